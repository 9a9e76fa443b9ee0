//! Worker threads of the data path, each with a single-threaded runtime.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use hyper_util::{rt::TokioExecutor, server::conn::auto};
use portcullis_telemetry::log_queue::use_slot_of_worker;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
    sync::{OwnedSemaphorePermit, mpsc, watch},
    task::JoinSet,
};

use crate::connection::{
    self, ConnectionLimits, Handler, activity::Activity, client_listener::ListenerContext,
    table::ConnectionTable,
};

/// The maximum number of accepted connections that wait for a worker.
const INBOX_CAPACITY: usize = 1024;

/// An accepted connection on its way to a worker.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) listener: Arc<ListenerContext>,
    /// Counts the connection against the limit until it ends.
    pub(crate) permit: OwnedSemaphorePermit,
    /// The table of all connections.
    pub(crate) connections: Arc<ConnectionTable>,
}

/// The accept loop's handle of a worker.
pub(crate) struct Worker {
    inbox: mpsc::Sender<Accepted>,
    /// The number of its connections.
    load: Arc<AtomicUsize>,
    runtime: Handle,
}

impl Worker {
    /// Starts the thread. It ends when the `Worker` is dropped and its last connection has ended,
    /// or `cancelled` is true; `done` is dropped then. Fails when the runtime or the thread cannot
    /// be created.
    pub(crate) fn start<H: Handler>(
        number: usize,
        handler: H,
        limits: ConnectionLimits,
        cancelled: watch::Receiver<bool>,
        done: mpsc::Sender<()>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (inbox, accepted) = mpsc::channel(INBOX_CAPACITY);
        let load = Arc::new(AtomicUsize::new(0));
        let worker = Self {
            inbox,
            load: Arc::clone(&load),
            runtime: runtime.handle().clone(),
        };
        let context = ConnectionContext {
            handler,
            protocol: connection::protocol(limits),
            limits,
        };
        thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                use_slot_of_worker(number);
                runtime.block_on(run(accepted, Arc::new(context), cancelled, load));
                // Cancelled requests end and are logged with the runtime, before the worker counts
                // as done.
                drop((runtime, done));
            })?;
        Ok(worker)
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns the number of its connections.
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Passes a connection to the worker.
    pub(crate) async fn send(&self, accepted: Accepted) {
        self.load.fetch_add(1, Ordering::Relaxed);
        // Fails only when the process ends: the worker outlives its inbox.
        let _ = self.inbox.send(accepted).await;
    }
}

/// What the connections of a worker have in common.
struct ConnectionContext<H> {
    handler: H,
    protocol: auto::Builder<TokioExecutor>,
    limits: ConnectionLimits,
}

/// Serves the connections of the inbox until it is closed and all connections have ended, or they
/// are cancelled.
async fn run<H: Handler>(
    mut inbox: mpsc::Receiver<Accepted>,
    context: Arc<ConnectionContext<H>>,
    mut cancelled: watch::Receiver<bool>,
    load: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = inbox.recv() => {
                let Some(accepted) = accepted else { break };
                spawn(&mut connections, accepted, Arc::clone(&context), LoadGuard(Arc::clone(&load)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    loop {
        tokio::select! {
            ended = connections.join_next() => if ended.is_none() { return },
            Ok(_) = cancelled.wait_for(|cancelled| *cancelled) => return connections.shutdown().await,
        }
    }
}

/// Starts the task of a connection, and adds the connection to the table.
fn spawn<H: Handler>(
    connections: &mut JoinSet<()>,
    accepted: Accepted,
    context: Arc<ConnectionContext<H>>,
    load: LoadGuard,
) {
    let Accepted {
        stream,
        peer,
        listener,
        permit,
        connections: table,
    } = accepted;
    let activity = Activity::new();
    let entry = table.add(Arc::clone(&activity));
    let slot = entry.slot();
    let task = connections.spawn(async move {
        // Dropped in this order: the entry is free before another connection can get the permit.
        let _held = (entry, load, permit);
        if let Err(error) = context.serve(stream, peer, activity, &listener).await {
            tracing::debug!(error = %error, "a connection was not served");
        }
    });
    // The task has not started, because it runs on this thread.
    table.set_task(slot, task);
}

impl<H: Handler> ConnectionContext<H> {
    /// Serves a connection. Fails when the socket cannot be used, or the TLS handshake fails.
    async fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        activity: Arc<Activity>,
        listener: &ListenerContext,
    ) -> io::Result<()> {
        let stream = tokio::net::TcpStream::from_std(stream)?;
        let draining = listener.draining();
        match &listener.tls {
            None => self.serve_http(stream, peer, activity, draining).await,
            // Boxed, so that a connection without TLS does not take the memory of one with it.
            Some(tls) => {
                let served = async {
                    let stream = tls.accept(stream).await?;
                    self.serve_http(stream, peer, activity, draining).await;
                    io::Result::Ok(())
                };
                Box::pin(served).await?;
            }
        }
        Ok(())
    }

    fn serve_http<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        activity: Arc<Activity>,
        draining: watch::Receiver<bool>,
    ) -> impl Future<Output = ()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handler = self.handler.clone();
        connection::serve(
            stream,
            peer,
            &self.protocol,
            self.limits,
            handler,
            activity,
            draining,
        )
    }
}

/// Counts a connection of the worker until it is dropped.
struct LoadGuard(Arc<AtomicUsize>);

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
