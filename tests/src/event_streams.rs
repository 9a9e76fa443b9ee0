//! [`EventStreams`]: an upstream that responds with event streams, and the clients that read them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use tokio::{sync::mpsc::UnboundedSender, time::timeout};

use crate::{ChannelBody, Connection, Deployment, RecordedRequest, Request, TIMEOUT, Upstream};

/// The streams that an upstream has opened, in the order of their requests. Clones share them.
#[derive(Clone, Default)]
pub struct EventStreams(Arc<Mutex<Vec<UnboundedSender<Bytes>>>>);

/// An event stream with its client and its upstream.
pub struct EventStream {
    /// The client's connection, after the head of the response.
    pub connection: Connection,
    /// The sender of the upstream's events.
    pub events: UnboundedSender<Bytes>,
}

impl EventStreams {
    /// The event that [`send`](Self::send) sends.
    pub const EVENT: &'static str = "data: open\n\n";

    /// Starts an upstream that responds to GET, `tools/call` and `subscriptions/listen` with an
    /// event stream.
    pub async fn upstream(&self) -> Upstream {
        self.upstream_for(|request| {
            let method = request.message_method();
            request.method == Method::GET
                || matches!(
                    method.as_deref(),
                    Some("tools/call" | "subscriptions/listen")
                )
        })
        .await
    }

    /// Starts an upstream that responds to GET with an event stream, and to calls with their
    /// results.
    pub async fn listening_upstream(&self) -> Upstream {
        self.upstream_for(|request| request.method == Method::GET)
            .await
    }

    /// Starts an upstream that answers these requests with a stream.
    async fn upstream_for(
        &self,
        is_streamed: impl Fn(&RecordedRequest) -> bool + Send + Sync + 'static,
    ) -> Upstream {
        let streams = self.clone();
        Upstream::scripted(move |request: &RecordedRequest| {
            if !is_streamed(request) {
                return None;
            }
            let (sender, body) = ChannelBody::new();
            streams.0.lock().push(sender);
            Some(Upstream::streaming(
                200,
                &[("content-type", "text/event-stream")],
                body,
            ))
        })
        .await
    }

    /// Sends [`EVENT`](Self::EVENT) on the stream of this number.
    ///
    /// # Panics
    /// Panics if the stream has ended.
    pub fn send(&self, stream: usize) {
        let streams = self.0.lock();
        streams[stream]
            .send(Self::EVENT.into())
            .expect("the stream is open");
    }

    /// Takes the sender of the newest stream.
    ///
    /// # Panics
    /// Panics if there is no stream.
    pub fn take(&self) -> UnboundedSender<Bytes> {
        self.0
            .lock()
            .pop()
            .expect("the request reached the upstream")
    }

    /// Opens the event stream of a session and asserts that it forwards events.
    ///
    /// # Panics
    /// Panics if the response is not an event stream.
    pub async fn listen(&self, deployment: &Deployment, token: &str, session: &str) -> EventStream {
        self.open(
            deployment,
            Request::listen(Deployment::ENDPOINT, token, session),
        )
        .await
    }

    /// Sends a request, reads the head of its response, and asserts that it forwards events.
    ///
    /// # Panics
    /// Panics if the response is not an event stream.
    pub async fn open(&self, deployment: &Deployment, request: Request) -> EventStream {
        let mut connection = Connection::open(deployment.portcullis.address()).await;
        connection.write(&request.to_bytes()).await;
        let head = connection.head().await.expect("a response");
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(
            head.header("content-type"),
            Some("text/event-stream"),
            "{head:?}"
        );
        assert_eq!(head.header("x-accel-buffering"), Some("no"), "{head:?}");
        let mut open = EventStream {
            connection,
            events: self.take(),
        };
        open.assert_open().await;
        open
    }
}

impl EventStream {
    /// Asserts that a chunk of the upstream reaches the client unchanged.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_forwarded(&mut self, chunk: &'static str) {
        self.send(chunk);
        assert_eq!(
            self.connection.event().await.as_deref(),
            Some(chunk.as_bytes())
        );
    }

    /// Sends a chunk from the upstream.
    ///
    /// # Panics
    /// Panics if the upstream's stream is closed.
    pub fn send(&self, chunk: &'static str) {
        self.events
            .send(chunk.into())
            .expect("the upstream's stream is open");
    }

    /// Asserts that the stream forwards events.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_open(&mut self) {
        self.assert_forwarded(EventStreams::EVENT).await;
    }

    /// Asserts that the stream ends without further data, for the client and then at the upstream.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_ended(&mut self) {
        assert_eq!(self.connection.event().await, None);
        self.assert_upstream_ended(TIMEOUT).await;
    }

    /// Asserts that the stream ends at the upstream within `limit`.
    ///
    /// # Panics
    /// Panics otherwise.
    pub async fn assert_upstream_ended(&self, limit: Duration) {
        timeout(limit, self.events.closed())
            .await
            .expect("the upstream's stream ends");
    }
}
