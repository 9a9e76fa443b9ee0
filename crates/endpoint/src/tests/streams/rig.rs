//! An endpoint whose streams a test writes, reads and lets grow old.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use http_body_util::Full;
use portcullis_guard::GuardLayer;
use portcullis_testkit::TokenBuilder;
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use super::super::fixture::*;
use crate::{Admitted, EndedStream, EndpointBodyError, EndpointLayer, StreamObserver, StreamRegistry};

/// The leeway of an issuer by default.
pub(super) const LEEWAY: u64 = 10;

/// The body of the one stream that a test's inner service returns.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Sent>>);

#[derive(Default)]
struct Sent {
    waiting: VecDeque<Bytes>,
    is_dropped: bool,
}

impl Events {
    pub(super) fn send(&self, piece: &'static str) {
        self.0.lock().unwrap().waiting.push_back(piece.into());
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.0.lock().unwrap().is_dropped
    }
}

pub(super) struct EventsBody(Events);

impl Body for EventsBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.0.lock().unwrap().waiting.pop_front();
        piece.map_or(Poll::Pending, |piece| Poll::Ready(Some(Ok(Frame::data(piece)))))
    }
}

impl Drop for EventsBody {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().is_dropped = true;
    }
}

/// Answers everything with one stream.
#[derive(Clone)]
pub(super) struct Streaming {
    events: Events,
    headers: &'static [(&'static str, &'static str)],
}

impl Service<Admitted> for Streaming {
    type Response = Response<EventsBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _admitted: Admitted) -> Self::Future {
        let response =
            self.headers.iter().fold(Response::builder(), |response, (name, value)| response.header(*name, *value));
        ready(Ok(response.body(EventsBody(self.events.clone())).unwrap()))
    }
}

#[derive(Default)]
pub(super) struct Told(Mutex<Vec<(&'static str, bool, Option<String>)>>);

impl StreamObserver for Told {
    fn ended(&self, stream: &EndedStream<'_>) {
        assert!(!stream.request_id.as_str().is_empty());
        assert!(stream.resource.as_str().starts_with("https://"));
        let subject = stream.principal.and_then(|principal| principal.subject()).map(str::to_owned);
        self.0.lock().unwrap().push((stream.reason.code(), stream.session.is_some(), subject));
    }
}

#[derive(Default)]
pub(super) struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A fixture whose streams a test can look at.
pub(super) struct Streams {
    pub(super) fixture: Fixture,
    pub(super) session: String,
    told: Arc<Told>,
}

/// An open stream: what its client reads, and what its upstream writes.
pub(super) struct Open {
    pub(super) body: Pin<Box<dyn Body<Data = Bytes, Error = EndpointBodyError<Infallible>>>>,
    pub(super) events: Events,
    woken: Arc<Woken>,
}

/// What a client reads at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Piece(String),
    Nothing,
    End,
    Failure,
}

pub(super) fn piece(text: &str) -> Read {
    Read::Piece(text.to_owned())
}

pub(super) const EVENT_STREAM: &[(&str, &str)] = &[("content-type", "Text/Event-Stream; charset=utf-8")];

impl Streams {
    /// A session of alice's, whose tokens live for 60 s.
    pub(super) async fn new() -> Self {
        Self::of(Fixture::guarded("mcp:tools")).await
    }

    pub(super) async fn of(mut fixture: Fixture) -> Self {
        let told = Arc::new(Told::default());
        fixture.settings.streams = StreamRegistry::new(Arc::new(fixture.clock.clone()), Arc::clone(&told) as _);
        let session = fixture.initialize().await;
        let mut streams = Self { fixture, session, told };
        streams.comes_with(60, "mcp:tools", |token| token);
        streams
    }

    pub(super) fn comes_with(&mut self, seconds: i64, scope: &str, change: impl FnOnce(TokenBuilder) -> TokenBuilder) {
        let token = change(self.fixture.test_issuer.token().scope(scope).expires_in(seconds));
        self.fixture.comes_with(&token);
    }

    pub(super) async fn get(&self) -> Open {
        self.open("GET", &[(SESSION, &self.session)], String::new(), EVENT_STREAM).await
    }

    pub(super) async fn open(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: String,
        response: &'static [(&'static str, &'static str)],
    ) -> Open {
        self.open_with(method, headers, body, response, Events::default()).await
    }

    /// The same with events that come at once.
    pub(super) async fn open_with(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: String,
        response: &'static [(&'static str, &'static str)],
        events: Events,
    ) -> Open {
        let inner = Streaming { events: events.clone(), headers: response };
        let endpoint = EndpointLayer::new(self.fixture.settings.clone()).unwrap().layer(inner);
        let guarded = GuardLayer::new(Arc::clone(&self.fixture.settings.resource)).layer(endpoint);
        let request = self.fixture.request(method, headers, Full::new(Bytes::from(body)));
        let response = guarded.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Open { body: Box::pin(response.into_body()), events, woken: Arc::default() }
    }

    /// A call in the session, which has a response that is not a stream.
    pub(super) async fn call(&self) -> u16 {
        self.fixture.post(&[(SESSION, &self.session)], request("echo", json!({}))).await.status
    }

    /// Lets time pass and sweeps: how many streams that ended.
    pub(super) fn pass(&self, seconds: u64) -> usize {
        self.fixture.clock.advance(Duration::from_secs(seconds));
        self.fixture.settings.streams.sweep()
    }

    pub(super) fn open_streams(&self) -> usize {
        self.fixture.settings.streams.len()
    }

    pub(super) fn told(&self) -> Vec<(&'static str, bool, Option<String>)> {
        self.told.0.lock().unwrap().clone()
    }
}

/// The comment of a silent stream.
pub(super) const COMMENT: &str = ":\n\n";

impl Open {
    /// What the client reads, comments aside.
    pub(super) fn read(&mut self) -> Read {
        match self.read_all() {
            Read::Piece(comment) if comment == COMMENT => self.read_all(),
            read => read,
        }
    }

    pub(super) fn read_all(&mut self) -> Read {
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.body.as_mut().poll_frame(&mut Context::from_waker(&waker)) {
            Poll::Pending => Read::Nothing,
            Poll::Ready(None) => Read::End,
            Poll::Ready(Some(Ok(frame))) => piece(std::str::from_utf8(frame.data_ref().unwrap()).unwrap()),
            Poll::Ready(Some(Err(EndpointBodyError::IncompleteEvent))) => Read::Failure,
            Poll::Ready(Some(Err(EndpointBodyError::Inner(infallible)))) => match infallible {},
        }
    }

    pub(super) fn woken(&self) -> usize {
        self.woken.0.swap(0, Ordering::SeqCst)
    }
}
