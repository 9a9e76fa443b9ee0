//! The signals that the process handles.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// The signals that a running server handles.
pub(crate) struct Signals {
    /// True from the first SIGINT or SIGTERM on.
    pub(crate) shutdown: watch::Receiver<bool>,
    /// The SIGHUPs.
    pub(super) hangups: Signal,
}

impl Signals {
    /// Handles the signals from now on: they do not end the process any more. Those that arrive before
    /// [`serve`](super::serve) are handled then.
    ///
    /// # Errors
    /// Fails when the signals cannot be handled.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O.
    pub(crate) fn handle() -> std::io::Result<Self> {
        Ok(Self { shutdown: shutdown()?, hangups: signal(SignalKind::hangup())? })
    }
}

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
