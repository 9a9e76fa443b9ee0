//! When to stop.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// A switch that turns true with the first SIGINT or SIGTERM.
///
/// # Errors
/// When the signals cannot be listened to.
pub(crate) fn on_signal() -> std::io::Result<watch::Receiver<bool>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (switch, shutdown) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // Nobody listens any more when the process is ending already.
        let _ = switch.send(true);
    });
    Ok(shutdown)
}
