//! The opening of the state directory: a start waits until the process that it replaces has
//! released it.

use std::{path::Path, time::Duration};

use portcullis_state_store::{StateDirectory, StateError};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The interval between attempts to lock the directory. The operating system does not notify
/// waiting processes.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(25);

/// Opens and locks a directory. While another process uses it, waits for at most `limit`. Returns
/// `None` if `shutdown` becomes true meanwhile. Fails if the directory cannot be used, or is still
/// in use after the limit.
pub(super) async fn open(
    path: &Path,
    limit: Duration,
    mut shutdown: watch::Receiver<bool>,
) -> Result<Option<StateDirectory>, StateError> {
    let start = Instant::now();
    let mut is_waiting = false;
    loop {
        match StateDirectory::open(path) {
            Err(StateError::InUse { .. }) if start.elapsed() < limit => {}
            other => return other.map(Some),
        }
        if !is_waiting {
            is_waiting = true;
            tracing::warn!(
                state.directory = %path.display(),
                "waiting for another process to release the state directory, at most {} s (shutdown_delay, shutdown_timeout and 5 s)",
                limit.as_secs_f32()
            );
        }
        tokio::select! {
            () = sleep(LOCK_RETRY_INTERVAL) => {}
            _ = shutdown.wait_for(|is_shutting_down| *is_shutting_down) => return Ok(None),
        }
    }
}
