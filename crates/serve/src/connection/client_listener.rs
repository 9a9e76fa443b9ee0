//! [`ClientListener`]: where clients connect, and its replacement while the server runs.

use std::{
    io,
    net::{SocketAddr, TcpListener as StdTcpListener, TcpStream},
    sync::Arc,
};

use tokio::{net::TcpListener, sync::watch};

use super::tls::Tls;

/// The maximum number of connections that are taken from the queue of a replaced listener. Linux
/// queues 4096 by default (`net.core.somaxconn`).
const MAX_QUEUED: usize = 4096;

/// The listener of clients.
pub(crate) struct ClientListener {
    socket: TcpListener,
    context: Arc<ListenerContext>,
}

/// What the connections of one listener have in common.
pub(crate) struct ListenerContext {
    /// `None` if the listener uses plain HTTP.
    pub(crate) tls: Option<Tls>,
    /// Whether its connections close as soon as no request is in progress.
    draining: watch::Sender<bool>,
}

/// An accepted connection and its listener.
pub(crate) struct AcceptedStream {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) listener: Arc<ListenerContext>,
}

/// What takes the place of a listener.
pub(crate) struct Replacement {
    /// A socket that listens on another address. `None` keeps the present one.
    pub(crate) socket: Option<TcpListener>,
    /// `None` for plain HTTP.
    pub(crate) tls: Option<Tls>,
}

impl ClientListener {
    pub(crate) fn new(socket: TcpListener, tls: Option<Tls>) -> Self {
        Self {
            socket,
            context: ListenerContext::new(tls),
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<AcceptedStream> {
        let (stream, peer) = self.socket.accept().await?;
        Ok(AcceptedStream {
            stream: stream.into_std()?,
            peer,
            listener: Arc::clone(&self.context),
        })
    }

    /// Replaces the listener. The connections of the former one close as soon as no request is in
    /// progress. Returns those that were in its queue, whose clients do not know of the
    /// replacement.
    pub(crate) fn replace(&mut self, replacement: Replacement) -> Vec<AcceptedStream> {
        let Replacement { socket, tls } = replacement;
        let former = std::mem::replace(&mut self.context, ListenerContext::new(tls));
        let queued = match socket {
            Some(socket) => {
                let closed = std::mem::replace(&mut self.socket, socket);
                log_replaced(&closed, &self.socket);
                queued_at(closed, &former)
            }
            None => Vec::new(),
        };
        former.draining.send_replace(true);
        queued
    }

    /// Stops listening: its connections close as soon as no request is in progress.
    pub(crate) fn end(self) {
        self.context.draining.send_replace(true);
    }
}

impl ListenerContext {
    fn new(tls: Option<Tls>) -> Arc<Self> {
        let (draining, _) = watch::channel(false);
        Arc::new(Self { tls, draining })
    }

    /// Becomes true when the connections must close as soon as no request is in progress.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }
}

/// Takes the connections from the queue of a listener, and closes it.
fn queued_at(socket: TcpListener, context: &Arc<ListenerContext>) -> Vec<AcceptedStream> {
    let accept = |socket: &StdTcpListener| {
        let (stream, peer) = socket.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(AcceptedStream {
            stream,
            peer,
            listener: Arc::clone(context),
        })
    };
    // The socket does not block, so that an empty queue is an error.
    match socket.into_std() {
        Ok(socket) => std::iter::from_fn(|| accept(&socket))
            .take(MAX_QUEUED)
            .collect(),
        Err(_) => Vec::new(),
    }
}

fn log_replaced(former: &TcpListener, new: &TcpListener) {
    if let (Ok(former), Ok(new)) = (former.local_addr(), new.local_addr()) {
        tracing::info!(
            listen.address = %new, listen.former_address = %former,
            "listening on another address; the connections of the former one close after their requests"
        );
    }
}
