//! The opening of the state directory: a start waits until the process that it replaces has
//! released it.

use std::{net::SocketAddr, path::Path, time::Duration};

use portcullis_config::plan::Plan;
use portcullis_state_store::{StateDirectory, StateError};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::connection::listener::is_in_use;

/// The interval between attempts to lock the directory. The operating system does not notify
/// waiting processes.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(25);

/// The time that a shutdown can take beyond its delay and its timeout, for its last steps.
const LAST_STEPS: Duration = Duration::from_secs(5);

/// The time in which a process closes its listener after its `shutdown_delay`.
const LISTENER_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What the attempt to open the directory led to.
pub(super) enum Opening {
    /// It is locked.
    Open(StateDirectory),
    /// This process shuts down, and another one still uses the directory.
    ShuttingDown,
    /// Another process uses the directory, and one listens on this address and does not end.
    AddressInUse(SocketAddr),
}

/// Opens and locks a directory. While another process uses it, waits for at most the longest
/// shutdown of that process.
///
/// `listen` is the address that this process will bind. A process that shuts down closes its
/// listener after its `shutdown_delay`, so that one that still listens later is not ending: waiting
/// for the directory would be in vain.
///
/// Fails if the directory cannot be used, or is still in use after the wait.
pub(super) async fn open(
    path: &Path,
    plan: &Plan,
    listen: Option<SocketAddr>,
    mut shutdown: watch::Receiver<bool>,
) -> Result<Opening, StateError> {
    let limit = plan.shutdown_delay + plan.shutdown_timeout + LAST_STEPS;
    let start = Instant::now();
    let mut is_waiting = false;
    loop {
        match StateDirectory::open(path) {
            Err(StateError::InUse { .. }) if start.elapsed() < limit => {}
            other => return other.map(Opening::Open),
        }
        match listen.filter(|address| is_in_use(*address)) {
            Some(address) if start.elapsed() >= plan.shutdown_delay + LISTENER_CLOSE_TIMEOUT => {
                return Ok(Opening::AddressInUse(address));
            }
            // The wait is announced when it is known that it can succeed.
            Some(_) => {}
            None if is_waiting => {}
            None => {
                is_waiting = true;
                tracing::warn!(
                    state.directory = %path.display(),
                    "waiting for another process to release the state directory, at most {} s (shutdown_delay, shutdown_timeout and 5 s)",
                    limit.as_secs_f32()
                );
            }
        }
        tokio::select! {
            () = sleep(LOCK_RETRY_INTERVAL) => {}
            _ = shutdown.wait_for(|is_shutting_down| *is_shutting_down) => return Ok(Opening::ShuttingDown),
        }
    }
}
