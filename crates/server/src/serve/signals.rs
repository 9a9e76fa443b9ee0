//! The signals that the process handles.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// Returns a channel whose value becomes true with the first SIGINT or SIGTERM.
///
/// # Errors
/// Fails when the signals cannot be handled.
pub(crate) fn shutdown() -> std::io::Result<watch::Receiver<bool>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, shutdown) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // Without a receiver the process is ending already.
        let _ = sender.send(true);
    });
    Ok(shutdown)
}

/// Returns the SIGHUP signals. From now on SIGHUP does not end the process.
///
/// # Errors
/// Fails when the signal cannot be handled.
pub(super) fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}
