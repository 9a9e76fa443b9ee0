//! The signals that the process handles.

use tokio::{
    signal::unix::{SignalKind, signal},
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

/// Keeps SIGHUP from ending the process. Tasks that reload files on SIGHUP listen to it themselves.
///
/// # Errors
/// Fails when the signal cannot be handled.
pub(super) fn ignore_hangup() -> std::io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            tracing::debug!("hangup: files that can be reloaded are reloaded");
        }
    });
    Ok(())
}
