//! [`block_on`]: runs a tool until it ends or is interrupted.

use anyhow::bail;
use tokio::signal::unix::{SignalKind, signal};

/// Runs a future on a single-threaded runtime. SIGINT, SIGTERM and SIGHUP drop the future, and with
/// it its processes.
///
/// # Errors
/// Fails when the future fails or is interrupted.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let mut hang_up = signal(SignalKind::hangup())?;
            tokio::select! {
                result = future => result,
                _ = interrupt.recv() => bail!("interrupted"),
                _ = terminate.recv() => bail!("terminated"),
                _ = hang_up.recv() => bail!("the terminal was closed"),
            }
        })
}
