use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// The signals that a running server handles.
pub struct Signals {
    /// True from the first SIGINT or SIGTERM on.
    pub shutdown: watch::Receiver<bool>,
    /// The SIGHUPs. `None` if they are not handled.
    pub(super) hangups: Option<Signal>,
}

impl Signals {
    /// Handles the signals from now on: they do not end the process any more. Those that arrive
    /// before [`Server::serve`](super::Server::serve) are handled then.
    ///
    /// # Errors
    /// Fails when the signals cannot be handled.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O.
    pub fn handle() -> std::io::Result<Self> {
        Ok(Self {
            shutdown: shutdown()?,
            hangups: Some(signal(SignalKind::hangup())?),
        })
    }

    /// Handles no signal of the process. The server stops when the value becomes true or its sender
    /// is dropped.
    pub fn stop_with(shutdown: watch::Receiver<bool>) -> Self {
        Self {
            shutdown,
            hangups: None,
        }
    }
}

/// Returns a channel whose value becomes true with the first SIGINT or SIGTERM.
///
/// # Errors
/// Fails when the signals cannot be handled.
pub fn shutdown() -> std::io::Result<watch::Receiver<bool>> {
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
