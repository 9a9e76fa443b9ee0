//! SIGHUP, by which files are read anew, and by which a process ends unless it says otherwise.

use tokio::signal::unix::{SignalKind, signal};

/// Keeps SIGHUP from ending the process, whether there is a file to be read anew or not. Whoever has one listens, too.
///
/// # Errors
/// When the signal cannot be listened to.
pub(super) fn outlive() -> std::io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            tracing::debug!("hangup: whatever is read from files that can be replaced is read anew");
        }
    });
    Ok(())
}
