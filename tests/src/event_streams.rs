//! [`EventStreams`]: an upstream that responds with event streams, and the clients that read them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::Method;
use tokio::{sync::mpsc::UnboundedSender, time::timeout};

use crate::{Connection, Deployment, Recorded, Request, TIMEOUT, Trickle, Upstream};

/// The streams that an upstream has opened, in the order of their requests. Clones share them.
#[derive(Clone, Default)]
pub struct EventStreams(Arc<Mutex<Vec<UnboundedSender<Bytes>>>>);

/// An event stream with its client and its upstream.
pub struct EventStream {
    /// The client's connection, behind the head of the response.
    pub connection: Connection,
    /// What the upstream sends.
    pub events: UnboundedSender<Bytes>,
}

impl EventStreams {
    /// Starts an upstream that responds to GET, `tools/call` and `subscriptions/listen` with an event stream.
    pub async fn upstream(&self) -> Upstream {
        let streams = self.clone();
        Upstream::scripted(move |request: &Recorded| {
            let method = request.message_method();
            if request.method != Method::GET
                && !matches!(method.as_deref(), Some("tools/call" | "subscriptions/listen"))
            {
                return None;
            }
            let (sender, body) = Trickle::new();
            streams.0.lock().expect("no test has panicked").push(sender);
            Some(Upstream::trickle(200, &[("content-type", "text/event-stream")], body))
        })
        .await
    }

    /// Sends a request, reads the head of its response, and checks that an event passes.
    ///
    /// # Panics
    /// Panics if the response is not an event stream.
    pub async fn open(&self, deployment: &Deployment, request: Request) -> EventStream {
        let mut connection = Connection::open(deployment.portcullis.address()).await;
        connection.write(&request.to_bytes()).await;
        let head = connection.head().await.expect("a response");
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
        assert_eq!(head.header("x-accel-buffering"), Some("no"), "{head:?}");
        let events = self.0.lock().expect("no test has panicked").pop().expect("the upstream was asked");
        let mut open = EventStream { connection, events };
        open.assert_open().await;
        open
    }
}

impl EventStream {
    /// Sends a piece from the upstream to the client.
    ///
    /// # Panics
    /// Panics if the client does not receive it as it is.
    pub async fn pass(&mut self, piece: &'static str) {
        self.send(piece);
        assert_eq!(self.connection.chunk().await.as_deref(), Some(piece.as_bytes()));
    }

    /// Sends a piece from the upstream.
    ///
    /// # Panics
    /// Panics if the upstream's stream is closed.
    pub fn send(&self, piece: &'static str) {
        self.events.send(piece.into()).expect("the upstream's stream is open");
    }

    /// Checks that an event passes.
    ///
    /// # Panics
    /// Panics if it does not.
    pub async fn assert_open(&mut self) {
        self.pass("data: open\n\n").await;
    }

    /// Waits for the end of the stream, which comes without anything before it, and then for the end of the upstream's.
    ///
    /// # Panics
    /// Panics if they do not end.
    pub async fn ended(&mut self) {
        assert_eq!(self.connection.chunk().await, None);
        self.upstream_ended(TIMEOUT).await;
    }

    /// Waits until the upstream's stream is closed.
    ///
    /// # Panics
    /// Panics if it is open for longer than `limit`.
    pub async fn upstream_ended(&self, limit: Duration) {
        timeout(limit, self.events.closed()).await.expect("the upstream's stream ends");
    }
}
