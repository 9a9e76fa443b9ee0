use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::{sleep, timeout},
};

use super::{
    client_listener::{AcceptedStream, ClientListener, Replacement},
    table::ConnectionTable,
};
use crate::worker_pool::worker::{Accepted, Worker};

/// The pause after a failed accept, so that the loop does not spin without file descriptors.
const ERROR_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for the permit of a closed connection before another one is closed.
const RETRY: Duration = Duration::from_millis(100);
/// The minimum time between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Passes each connection to the worker with the fewest until `draining` is true, then drops the
/// listener and the workers' inboxes. A connection that is not passed by then is closed.
///
/// Each of `replacements` takes the place of the listener.
pub(crate) async fn run(
    mut listener: ClientListener,
    mut replacements: mpsc::Receiver<Replacement>,
    workers: Vec<Worker>,
    max_connections: usize,
    mut draining: watch::Receiver<bool>,
) {
    let mut acceptance = Acceptance {
        permits: Arc::new(Semaphore::new(max_connections)),
        connections: Arc::new(ConnectionTable::default()),
        workers,
        warned: None,
    };
    loop {
        let next = tokio::select! {
            biased;
            _ = draining.wait_for(|draining| *draining) => break,
            Some(replacement) = replacements.recv() => Next::Replacement(replacement),
            accepted = listener.accept() => Next::Connection(accepted),
        };
        // A connection that is accepted keeps its place while it waits for a permit and a worker.
        let handled = async {
            match next {
                Next::Connection(accepted) => acceptance.pass(accepted).await,
                Next::Replacement(replacement) => {
                    for stream in listener.replace(replacement) {
                        acceptance.pass(Ok(stream)).await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            _ = draining.wait_for(|draining| *draining) => break,
            () = handled => {}
        }
    }
    listener.end();
}

enum Next {
    Connection(io::Result<AcceptedStream>),
    Replacement(Replacement),
}

/// What accepted connections need.
struct Acceptance {
    permits: Arc<Semaphore>,
    connections: Arc<ConnectionTable>,
    workers: Vec<Worker>,
    /// The time of the last warning.
    warned: Option<Instant>,
}

impl Acceptance {
    /// Passes a connection to the worker with the fewest. Waits for its permit, and while the inbox
    /// of the worker is full. At the limit, further connections wait in the kernel's bounded
    /// backlog. Pauses after an error.
    async fn pass(&mut self, accepted: io::Result<AcceptedStream>) {
        let admitted = match accepted {
            Ok(stream) => self.admit(stream).await,
            Err(error) => Err(error),
        };
        match admitted {
            // There is at least one worker: the configuration requires it.
            Ok(accepted) => {
                if let Some(worker) = self.workers.iter().min_by_key(|worker| worker.load()) {
                    worker.send(accepted).await;
                }
            }
            Err(error) => self.pause_after(&error).await,
        }
    }

    async fn admit(&self, accepted: AcceptedStream) -> io::Result<Accepted> {
        let AcceptedStream {
            stream,
            peer,
            listener,
        } = accepted;
        stream.set_nodelay(true)?;
        let permit = acquire_permit(&self.permits, &self.connections).await?;
        Ok(Accepted {
            stream,
            peer,
            listener,
            permit,
            connections: Arc::clone(&self.connections),
        })
    }

    async fn pause_after(&mut self, error: &io::Error) {
        if self
            .warned
            .is_none_or(|warned| warned.elapsed() >= WARN_EVERY)
        {
            self.warned = Some(Instant::now());
            tracing::warn!(error = %error, "a connection was not accepted");
        }
        if is_out_of_files(error) {
            self.connections.close_idle();
        }
        sleep(ERROR_PAUSE).await;
    }
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
