//! The one accept loop: each connection goes to the worker that has the fewest.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    time::sleep,
};

use super::worker::{Accepted, Worker};

/// A pause after a failed accept, so that a lack of file descriptors does not spin a core.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts until `shutdown` is true, then lets the listener and the workers' inboxes go.
pub(super) async fn run(
    listener: TcpListener,
    workers: Vec<Worker>,
    max_connections: usize,
    mut shutdown: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(max_connections));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = shutdown.wait_for(|shutdown| *shutdown) => return,
            accepted = accept(&listener, &places) => accepted,
        };
        match (accepted, workers.iter().min_by_key(|worker| worker.load())) {
            (Ok(accepted), Some(worker)) => worker.hand(accepted).await,
            (Err(error), _) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                sleep(PAUSE).await;
            }
            (Ok(_), None) => return,
        }
    }
}

/// Takes a place first: at the limit, new connections wait in the kernel's bounded backlog.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> io::Result<Accepted> {
    let permit = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(Accepted { stream: stream.into_std()?, peer, permit })
}
