//! The one accept loop: each connection goes to the worker that has the fewest.

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

use super::{
    connections::Connections,
    worker::{Accepted, Worker},
};

/// A pause after a failed accept, so that a lack of file descriptors does not spin a core.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection that was closed may take to free its place before another one is closed.
const RETRY: Duration = Duration::from_millis(100);
/// Failures are logged at most this often.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Accepts until `shutdown` is true, then lets the listener and the workers' inboxes go.
pub(super) async fn run(
    listener: TcpListener,
    workers: Vec<Worker>,
    max_connections: usize,
    mut shutdown: watch::Receiver<bool>,
) {
    let (places, connections) = (Arc::new(Semaphore::new(max_connections)), Arc::new(Connections::default()));
    let mut warned: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = shutdown.wait_for(|shutdown| *shutdown) => return,
            accepted = accept(&listener, &places, &connections) => accepted,
        };
        match (accepted, workers.iter().min_by_key(|worker| worker.load())) {
            (Ok(accepted), Some(worker)) => worker.hand(accepted).await,
            (Err(error), _) => {
                if warned.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
                    warned = Some(Instant::now());
                    tracing::warn!(error = %error, "a connection was not accepted");
                }
                if is_out_of_files(&error) {
                    connections.close_idle();
                }
                sleep(PAUSE).await;
            }
            (Ok(_), None) => return,
        }
    }
}

/// Accepts one connection and waits for a place for it: at the limit, further ones wait in the kernel's bounded backlog.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    connections: &Arc<Connections>,
) -> io::Result<Accepted> {
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let permit = place(places, connections).await?;
    Ok(Accepted { stream: stream.into_std()?, peer, permit, connections: Arc::clone(connections) })
}

/// Takes a place. At the limit, the longest idle connection is closed for the new one; when all have requests in
/// progress, the new one waits.
async fn place(places: &Arc<Semaphore>, connections: &Connections) -> io::Result<OwnedSemaphorePermit> {
    loop {
        if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
            return Ok(permit);
        }
        if connections.close_idle() {
            tracing::debug!("an idle connection was closed for a new one");
        }
        if let Ok(permit) = timeout(RETRY, Arc::clone(places).acquire_owned()).await {
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
