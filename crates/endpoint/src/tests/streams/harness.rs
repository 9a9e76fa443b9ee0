//! [`Streams`]: an endpoint whose streams a test writes, reads and lets expire.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body;
use http_body_util::Full;
use parking_lot::Mutex;
use portcullis_guard::GuardLayer;
use portcullis_testkit::TokenBuilder;
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;

use super::{
    super::fixture::*,
    scripted::{Events, Headers, ScriptedStream},
};
use crate::{EndedStream, EndpointBodyError, EndpointLayer, StreamObserver, StreamRegistry};

/// The lifetime of the first token, in seconds.
const TOKEN_LIFETIME: u64 = 60;
/// The default leeway of an issuer, in seconds.
const LEEWAY: u64 = 10;
/// When streams that were opened with the first token end, in seconds from their start.
pub(super) const TOKEN_END: u64 = TOKEN_LIFETIME + LEEWAY;

/// The comment of a silent stream.
pub(super) const COMMENT: &str = ":\n\n";

pub(super) const EVENT_STREAM: Headers = &[("content-type", "Text/Event-Stream; charset=utf-8")];
pub(super) const ENCODED_EVENT_STREAM: Headers = &[
    ("content-type", "text/event-stream"),
    ("content-encoding", "gzip"),
];

/// An endpoint with an open session, and the streams that have ended.
pub(super) struct Streams {
    pub(super) fixture: Fixture,
    pub(super) session: String,
    ended: Arc<EndedStreams>,
}

/// What the registry reported about one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: &'static str,
    pub(super) in_session: bool,
    pub(super) subject: Option<String>,
}

#[derive(Default)]
struct EndedStreams(Mutex<Vec<Ended>>);

impl StreamObserver for EndedStreams {
    fn ended(&self, stream: &EndedStream<'_>) {
        assert!(!stream.request_id.as_str().is_empty());
        assert!(stream.resource.as_str().starts_with("https://"));
        self.0.lock().push(Ended {
            code: stream.reason.code(),
            in_session: stream.session.is_some(),
            subject: stream
                .principal
                .and_then(|principal| principal.subject())
                .map(str::to_owned),
        });
    }
}

impl Streams {
    /// Opens a session of alice's with a token that lives for [`TOKEN_LIFETIME`].
    pub(super) async fn new() -> Self {
        Self::with_fixture(Fixture::guarded("mcp:tools")).await
    }

    pub(super) async fn with_fixture(mut fixture: Fixture) -> Self {
        let ended = Arc::new(EndedStreams::default());
        fixture.settings.streams =
            StreamRegistry::new(Arc::new(fixture.clock.clone()), Arc::clone(&ended) as _);
        let session = fixture.initialize().await;
        let mut streams = Self {
            fixture,
            session,
            ended,
        };
        streams.use_token(streams.token("mcp:tools", TOKEN_LIFETIME));
        streams
    }

    /// Returns a token of alice's with these scopes and this lifetime in seconds.
    pub(super) fn token(&self, scope: &str, lifetime: u64) -> TokenBuilder {
        self.fixture
            .test_issuer
            .token()
            .scope(scope)
            .expires_in(lifetime.try_into().unwrap())
    }

    /// Sends this token with all later requests.
    pub(super) fn use_token(&mut self, token: TokenBuilder) {
        self.fixture.use_token(&token);
    }

    /// Opens the session's stream with GET.
    pub(super) async fn get_stream(&self) -> OpenStream {
        self.open(
            "GET",
            &[(SESSION, &self.session)],
            String::new(),
            EVENT_STREAM,
        )
        .await
    }

    /// Calls a tool in the session. The response is a stream.
    pub(super) async fn call_stream(&self) -> OpenStream {
        let headers = [
            (SESSION, self.session.as_str()),
            ("content-type", "application/json"),
        ];
        let message = request("tools/call", json!({"name": "slow"})).to_string();
        self.open("POST", &headers, message, EVENT_STREAM).await
    }

    /// Sends a request whose response has these headers and no body yet.
    pub(super) async fn open(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: String,
        response: Headers,
    ) -> OpenStream {
        self.open_with(method, headers, body, response, Events::default())
            .await
    }

    /// The same with events that may be sent before the response.
    pub(super) async fn open_with(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: String,
        response: Headers,
        events: Events,
    ) -> OpenStream {
        let inner = ScriptedStream {
            events: events.clone(),
            headers: response,
        };
        let endpoint = EndpointLayer::new(self.fixture.settings.clone())
            .unwrap()
            .layer(inner);
        let guarded = GuardLayer::new(Arc::clone(&self.fixture.settings.resource)).layer(endpoint);
        let request = self
            .fixture
            .request(method, headers, Full::new(Bytes::from(body)));
        let response = guarded.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        OpenStream {
            body: Box::pin(response.into_body()),
            events,
            wakeups: Arc::default(),
        }
    }

    /// Sends a request in the session whose response is not a stream, and returns the status.
    pub(super) async fn call(&self) -> u16 {
        self.fixture
            .post(&[(SESSION, &self.session)], request("echo", json!({})))
            .await
            .status
    }

    /// Lets these seconds pass, sweeps the registry, and returns how many streams the sweep has
    /// ended.
    pub(super) fn advance_and_sweep(&self, seconds: u64) -> usize {
        self.fixture.clock.advance(Duration::from_secs(seconds));
        self.fixture.settings.streams.sweep()
    }

    pub(super) fn open_streams(&self) -> usize {
        self.fixture.settings.streams.len()
    }

    /// Returns the streams that have ended, in this order.
    pub(super) fn ended_streams(&self) -> Vec<Ended> {
        self.ended.0.lock().clone()
    }

    /// Returns the codes of [`ended_streams`](Self::ended_streams).
    pub(super) fn ended_codes(&self) -> Vec<&'static str> {
        self.ended_streams()
            .iter()
            .map(|ended| ended.code)
            .collect()
    }
}

/// An open stream: the client's side and the upstream's.
pub(super) struct OpenStream {
    pub(super) body: Pin<Box<dyn Body<Data = Bytes, Error = EndpointBodyError<Infallible>>>>,
    pub(super) events: Events,
    wakeups: Arc<Wakeups>,
}

/// What the client reads at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Data(String),
    Pending,
    End,
    Error,
}

pub(super) fn data(text: &str) -> Read {
    Read::Data(text.to_owned())
}

impl OpenStream {
    /// Reads the next frame that is not the comment of a silent stream.
    pub(super) fn read_events(&mut self) -> Read {
        match self.read_frame() {
            Read::Data(comment) if comment == COMMENT => self.read_frame(),
            read => read,
        }
    }

    /// Reads the next frame, which may be a comment.
    pub(super) fn read_frame(&mut self) -> Read {
        let waker = Waker::from(Arc::clone(&self.wakeups));
        match self
            .body
            .as_mut()
            .poll_frame(&mut Context::from_waker(&waker))
        {
            Poll::Pending => Read::Pending,
            Poll::Ready(None) => Read::End,
            Poll::Ready(Some(Ok(frame))) => {
                data(std::str::from_utf8(frame.data_ref().unwrap()).unwrap())
            }
            Poll::Ready(Some(Err(EndpointBodyError::IncompleteEvent))) => Read::Error,
            Poll::Ready(Some(Err(EndpointBodyError::Inner(infallible)))) => match infallible {},
        }
    }

    /// Returns how often the stream has woken its reader since the last call.
    pub(super) fn take_wakeups(&self) -> usize {
        self.wakeups.0.swap(0, Ordering::SeqCst)
    }
}

#[derive(Default)]
struct Wakeups(AtomicUsize);

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
