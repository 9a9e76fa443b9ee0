//! [`Fixture`]: a guarded endpoint over a scripted inner service.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use portcullis_guard::{
    Authentication, Decision, DecisionSink, GuardLayer, GuardSettings, Operation,
    ProtectedResource, authorize::ScopeEnforcer,
};
use portcullis_jose::{Algorithm, AlgorithmSet};
use portcullis_metadata::{JwkSet, ProtectedResourceMetadata, ResourceUri, Scopes};
use portcullis_session::{
    EndReason, Session, SessionKey, SessionObserver, SessionSettings, SessionStore,
};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer, TokenBuilder};
use portcullis_verifier::{IssuerSettings, KeySource, TrustedIssuer, Verifier, VerifierSettings};
use serde_json::{Value, json};
use tower::ServiceExt;
use tower_layer::Layer;

pub(super) use super::{inner::*, messages::*};
use crate::{EndpointBodyError, EndpointLayer, EndpointSettings};

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
pub(super) const BACKEND: &str = "backend-session-1";
pub(super) const CHALLENGE_START: &str = "Bearer realm=\"mcp.example.com\"";

/// A guarded endpoint with its issuer, clock, sessions and inner service, and the log of its
/// decisions.
pub(super) struct Fixture {
    pub(super) test_issuer: TestIssuer,
    /// The network of the issuer, for introspection. Keys are fixed.
    pub(super) fetch: ScriptedFetch,
    pub(super) clock: ManualClock,
    pub(super) sessions: SessionStore,
    pub(super) settings: EndpointSettings,
    pub(super) inner: Inner,
    pub(super) log: Arc<Log>,
    token: Option<String>,
}

/// The ended sessions, and the decisions about requests.
#[derive(Default)]
pub(super) struct Log {
    pub(super) ended: Mutex<Vec<EndReason>>,
    pub(super) decided: Mutex<Vec<(u16, Option<&'static str>)>>,
    pub(super) reported: Mutex<Vec<Reported>>,
}

/// The operation of a request, and its denial in report-only mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) operation: Option<Operation>,
    pub(super) report_only_denial: Option<&'static str>,
}

impl SessionObserver for Log {
    fn ended(&self, _session: &Session, reason: EndReason) {
        self.ended.lock().push(reason);
    }
}

struct Sink(Arc<Log>);

impl DecisionSink for Sink {
    fn decided(&self, decision: &Decision<'_>) {
        self.0
            .decided
            .lock()
            .push((decision.status.as_u16(), decision.code));
        let operation = decision.operation.cloned();
        let report_only_denial = decision.report_only_denial;
        self.0.reported.lock().push(Reported {
            operation,
            report_only_denial,
        });
    }
}

impl Fixture {
    /// Tokens are required, and the scopes as well.
    pub(super) fn guarded(required_scopes: &str) -> Self {
        Self::guarded_with(required_scopes, |_| {})
    }

    /// The same, with other settings of the guard.
    pub(super) fn guarded_with(
        required_scopes: &str,
        change: impl FnOnce(&mut GuardSettings),
    ) -> Self {
        Self::new(Some(required_scopes), |_| {}, change)
    }

    /// Tokens are required; `change` changes the settings of the issuer.
    pub(super) fn guarded_by(change: impl FnOnce(&mut IssuerSettings)) -> Self {
        Self::new(Some(""), change, |_| {})
    }

    /// Authentication is off.
    pub(super) fn open() -> Self {
        Self::new(None, |_| {}, |_| {})
    }

    /// Creates an endpoint without authentication if there are no required scopes.
    fn new(
        required_scopes: Option<&str>,
        change: impl FnOnce(&mut IssuerSettings),
        change_guard: impl FnOnce(&mut GuardSettings),
    ) -> Self {
        let clock = ManualClock::new();
        let test_issuer = TestIssuer::new("https://issuer.example")
            .with_algorithm(Algorithm::Es256)
            .with_clock(clock.clone());
        let resource = ResourceUri::parse(TestIssuer::RESOURCE).unwrap();
        let log = Arc::new(Log::default());
        let fetch = ScriptedFetch::new();
        let authentication = match required_scopes {
            Some(_) => {
                Authentication::Required(verifier(&test_issuer, &fetch, &resource, &clock, change))
            }
            None => Authentication::Off,
        };
        let required = Scopes::parse(required_scopes.unwrap_or_default()).unwrap();
        let metadata = ProtectedResourceMetadata::new(resource, vec![test_issuer.issuer().clone()]);
        let mut guard = GuardSettings::new(metadata, authentication).unwrap();
        guard.required_scopes = required.clone();
        guard.scopes_enforced_by = ScopeEnforcer::Inner;
        guard.cors = EndpointSettings::cors(&portcullis_mcp::header::SESSION);
        guard.clock = Arc::new(clock.clone());
        guard.sink = Arc::new(Sink(Arc::clone(&log)));
        change_guard(&mut guard);
        let mut session_settings = SessionSettings::new(SessionKey::new(0, &[7; 32]));
        session_settings.max_per_owner = 2;
        let sessions = SessionStore::builder(session_settings)
            .clock(Arc::new(clock.clone()))
            .observer(Arc::clone(&log) as Arc<dyn SessionObserver>)
            .build();
        let mut settings =
            EndpointSettings::new(ProtectedResource::new(guard).unwrap(), sessions.clone());
        settings.required_scopes = required;
        let token = required_scopes.map(|scopes| test_issuer.token().scope(scopes).sign());
        Self {
            test_issuer,
            fetch,
            clock,
            sessions,
            settings,
            inner: Inner::default(),
            log,
            token,
        }
    }

    /// Sends this token with all later requests.
    pub(super) fn use_token(&mut self, token: &TokenBuilder) {
        self.token = Some(token.sign());
    }

    /// Sends all later requests without a token.
    pub(super) fn use_no_token(&mut self) {
        self.token = None;
    }

    /// Sends a request with a body in one piece.
    pub(super) async fn send(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Received {
        self.send_body(method, headers, Full::new(body.into()))
            .await
    }

    /// POSTs a message as JSON.
    pub(super) async fn post(&self, headers: &[(&str, &str)], message: impl ToString) -> Received {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.send("POST", &headers, message.to_string()).await
    }

    /// Sends a request with any body, and reads the response.
    pub(super) async fn send_body<B>(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: B,
    ) -> Received
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let response = self.start(method, headers, body).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Received {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    /// POSTs a message as JSON to an endpoint that is kept.
    pub(super) async fn post_through(
        &self,
        layer: &EndpointLayer,
        headers: &[(&str, &str)],
        message: impl ToString,
    ) -> Received {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let guarded = GuardLayer::new(Arc::clone(&self.settings.resource))
            .layer(layer.layer(self.inner.clone()));
        let request = self.request(
            "POST",
            &headers,
            Full::new(Bytes::from(message.to_string())),
        );
        let (parts, body) = guarded.oneshot(request).await.unwrap().into_parts();
        Received {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// Builds a request with the current token.
    pub(super) fn request<B>(&self, method: &str, headers: &[(&str, &str)], body: B) -> Request<B> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "mcp.example.com");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body).unwrap()
    }

    /// Sends a request, whose future the test polls.
    pub(super) fn start<B>(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: B,
    ) -> impl Future<
        Output = Result<
            Response<impl Body<Data = Bytes, Error = EndpointBodyError<Infallible>>>,
            Infallible,
        >,
    >
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let endpoint = EndpointLayer::new(self.settings.clone())
            .unwrap()
            .layer(self.inner.clone());
        let guarded = GuardLayer::new(Arc::clone(&self.settings.resource)).layer(endpoint);
        guarded.oneshot(self.request(method, headers, body))
    }

    /// Opens a session and returns the client's identifier of it.
    pub(super) async fn initialize(&self) -> String {
        self.inner.add_response(200, &[(SESSION, BACKEND)], "{}");
        let response = self.post(&[], initialize()).await;
        assert_eq!(response.status, 200);
        response.header(SESSION).unwrap().to_owned()
    }

    /// Returns the status and reason of the last request.
    pub(super) fn decided(&self) -> (u16, Option<&'static str>) {
        *self.log.decided.lock().last().unwrap()
    }

    /// Returns the operation and report-only denial of the last request.
    pub(super) fn reported(&self) -> Reported {
        self.log.reported.lock().last().unwrap().clone()
    }

    pub(super) fn ended(&self) -> Vec<EndReason> {
        self.log.ended.lock().clone()
    }
}

/// A verifier for the tokens of this issuer and resource.
fn verifier(
    test_issuer: &TestIssuer,
    fetch: &ScriptedFetch,
    resource: &ResourceUri,
    clock: &ManualClock,
    change: impl FnOnce(&mut IssuerSettings),
) -> Arc<Verifier> {
    let mut issuer = IssuerSettings::new(test_issuer.issuer().clone());
    issuer.algorithms = AlgorithmSet::from_iter([Algorithm::Es256]);
    issuer.keys = KeySource::Fixed(JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap());
    change(&mut issuer);
    let control = tokio::runtime::Handle::current();
    let issuer = TrustedIssuer::new(
        issuer,
        Arc::new(fetch.clone()),
        Arc::new(clock.clone()),
        control,
    )
    .unwrap();
    Verifier::new(
        VerifierSettings::new(resource.clone()),
        vec![issuer],
        Arc::new(clock.clone()),
    )
    .unwrap()
}

/// A response with its complete body.
pub(super) struct Received {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the status and the JSON-RPC code.
    pub(super) fn error(&self) -> (u16, i64) {
        (self.status, self.json()["error"]["code"].as_i64().unwrap())
    }
}

/// A body in several frames, without a declared length.
pub(super) struct Pieces(pub(super) VecDeque<Result<Bytes, &'static str>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.0.pop_front().map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// A body that is always pending.
pub(super) struct Stalled;

impl Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// The response to a POST with an unknown session.
pub(super) fn no_session() -> Value {
    json!({
        "jsonrpc": "2.0",
        "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"},
        "id": null,
    })
}

pub(super) fn poll_once<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
