use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};

use super::table::ConnectionTable;
use crate::worker_pool::worker::{Accepted, Worker};

/// The pause after a failed accept, so that the loop does not spin without file descriptors.
const ERROR_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for the permit of a closed connection before another one is closed.
const RETRY: Duration = Duration::from_millis(100);
/// The minimum time between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Passes each connection to the worker with the fewest until `draining` is true, then drops the
/// listener and the workers' inboxes. A connection that is not passed by then is closed.
pub(crate) async fn run(
    listener: TcpListener,
    workers: Vec<Worker>,
    max_connections: usize,
    mut draining: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(max_connections));
    let connections = Arc::new(ConnectionTable::default());
    let mut warned: Option<Instant> = None;
    loop {
        let passed = tokio::select! {
            biased;
            _ = draining.wait_for(|draining| *draining) => return,
            passed = pass_one(&listener, &permits, &connections, &workers) => passed,
        };
        if let Err(error) = passed {
            if warned.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
                warned = Some(Instant::now());
                tracing::warn!(error = %error, "a connection was not accepted");
            }
            if is_out_of_files(&error) {
                connections.close_idle();
            }
            sleep(ERROR_PAUSE).await;
        }
    }
}

/// Accepts one connection and passes it to the worker with the fewest. Waits while the inbox of
/// this worker is full.
async fn pass_one(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    connections: &Arc<ConnectionTable>,
    workers: &[Worker],
) -> io::Result<()> {
    let accepted = accept(listener, permits, connections).await?;
    // There is at least one worker: the configuration requires it.
    if let Some(worker) = workers.iter().min_by_key(|worker| worker.load()) {
        worker.send(accepted).await;
    }
    Ok(())
}

/// Accepts one connection and waits for its permit. At the limit, further connections wait in the
/// kernel's bounded backlog.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    connections: &Arc<ConnectionTable>,
) -> io::Result<Accepted> {
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let permit = acquire_permit(permits, connections).await?;
    Ok(Accepted {
        stream: stream.into_std()?,
        peer,
        permit,
        connections: Arc::clone(connections),
    })
}

/// Acquires a permit. At the limit, the longest idle connection is closed for the new one; when all
/// have requests in progress, the new one waits. Fails when the semaphore is closed.
pub(crate) async fn acquire_permit(
    permits: &Arc<Semaphore>,
    connections: &ConnectionTable,
) -> io::Result<OwnedSemaphorePermit> {
    loop {
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Ok(permit);
        }
        if connections.close_idle() {
            tracing::debug!("an idle connection was closed for a new one");
        }
        if let Ok(permit) = timeout(RETRY, Arc::clone(permits).acquire_owned()).await {
            return permit.map_err(io::Error::other);
        }
    }
}

/// Whether the process or the system has no file descriptor left.
fn is_out_of_files(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let code = error.raw_os_error();
        code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}
