//! The data path: one thread with its own single-threaded runtime a core.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use super::{
    activity::Activity,
    connection::{self, Answer, ConnectionLimits},
    connections::Connections,
    tls::Tls,
};

/// Connections that wait for a worker to pick them up.
const BACKLOG: usize = 1024;

/// An accepted connection on its way to a worker.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    /// Its place among all connections; given back when the connection ends.
    pub(super) permit: OwnedSemaphorePermit,
    /// The table of all connections, in which it takes its place.
    pub(super) connections: Arc<Connections>,
}

/// How a worker learns that it is to end.
#[derive(Clone)]
pub(super) struct Ending {
    /// Requests under way may end, and none begins.
    pub(super) shutdown: watch::Receiver<bool>,
    /// Nothing is waited for any longer.
    pub(super) cut_off: watch::Receiver<bool>,
}

/// The accept loop's end of a worker.
pub(super) struct Worker {
    inbox: mpsc::Sender<Accepted>,
    load: Arc<AtomicUsize>,
}

impl Worker {
    /// Starts the thread. It ends when the `Worker` is dropped and its last connection has ended; `done` is dropped then.
    ///
    /// # Errors
    /// When the runtime or the thread cannot be made.
    pub(super) fn start<A: Answer>(
        name: String,
        answer: A,
        tls: Option<Tls>,
        limits: ConnectionLimits,
        ending: Ending,
        done: mpsc::Sender<()>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (inbox, accepted) = mpsc::channel(BACKLOG);
        let load = Arc::new(AtomicUsize::new(0));
        let worker = Self { inbox, load: Arc::clone(&load) };
        thread::Builder::new().name(name).spawn(move || {
            runtime.block_on(run(accepted, answer, tls, limits, ending, load));
            // What was cut off ends with the runtime, and is told of before the worker counts as done.
            drop((runtime, done));
        })?;
        Ok(worker)
    }

    /// Connections that it has now.
    pub(super) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Hands a connection over.
    pub(super) async fn hand(&self, accepted: Accepted) {
        self.load.fetch_add(1, Ordering::Relaxed);
        // The worker outlives its inbox; a failure could only mean that the process is ending.
        let _ = self.inbox.send(accepted).await;
    }
}

async fn run<A: Answer>(
    mut inbox: mpsc::Receiver<Accepted>,
    answer: A,
    tls: Option<Tls>,
    limits: ConnectionLimits,
    Ending { shutdown, mut cut_off }: Ending,
    load: Arc<AtomicUsize>,
) {
    let protocol = Arc::new(connection::protocol(limits));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = inbox.recv() => {
                let Some(Accepted { stream, peer, permit, connections: table }) = accepted else { break };
                let (protocol, answer, shutdown) = (Arc::clone(&protocol), answer.clone(), shutdown.clone());
                let tls = tls.clone();
                let counted = Counted(Arc::clone(&load));
                let activity = Activity::new();
                let place = table.add(Arc::clone(&activity));
                let slot = place.slot();
                let task = connections.spawn(async move {
                    // In this order: a new connection finds the place empty when it has the permit.
                    let _held = (place, counted, permit);
                    let served = async {
                        let stream = tokio::net::TcpStream::from_std(stream)?;
                        match tls {
                            None => connection::serve(stream, peer, &protocol, limits, answer, activity, shutdown).await,
                            Some(tls) => {
                                let stream = tls.accept(stream).await?;
                                connection::serve(stream, peer, &protocol, limits, answer, activity, shutdown).await;
                            }
                        }
                        io::Result::Ok(())
                    };
                    if let Err(error) = served.await {
                        tracing::debug!(error = %error, "a connection was not served");
                    }
                });
                // The task has not begun: it runs on this thread.
                table.set_task(slot, task);
            }
            Some(_) = connections.join_next() => {}
        }
    }
    loop {
        tokio::select! {
            ended = connections.join_next() => if ended.is_none() { return },
            Ok(_) = cut_off.wait_for(|cut_off| *cut_off) => return connections.shutdown().await,
        }
    }
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
