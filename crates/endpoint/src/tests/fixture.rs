//! [`Fixture`]: a guarded endpoint over a scripted inner service, and the messages of the tests.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use portcullis_guard::{
    Authentication, Decision, DecisionSink, GuardLayer, GuardSettings, Operation, ProtectedResource, ScopeEnforcer,
};
use portcullis_jose::{Algorithm, AlgorithmSet};
use portcullis_mcp::Era;
use portcullis_metadata::{JwkSet, ProtectedResourceMetadata, ResourceUri, Scopes};
use portcullis_session::{EndReason, Session, SessionKey, SessionObserver, SessionSettings, SessionStore};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer, TokenBuilder};
use portcullis_verifier::{IssuerSettings, KeySource, TrustedIssuer, Verifier, VerifierSettings};
use serde_json::{Value, json};
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use crate::{Admitted, EndpointBodyError, EndpointLayer, EndpointSettings};

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
pub(super) const BACKEND: &str = "backend-session-1";
pub(super) const CHALLENGE_START: &str = "Bearer realm=\"mcp.example.com\"";

/// A guarded endpoint with its issuer, clock, sessions and inner service, and the log of its decisions.
pub(super) struct Fixture {
    pub(super) test_issuer: TestIssuer,
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
        self.ended.lock().unwrap().push(reason);
    }
}

struct Sink(Arc<Log>);

impl DecisionSink for Sink {
    fn decided(&self, decision: &Decision<'_>) {
        self.0.decided.lock().unwrap().push((decision.status.as_u16(), decision.code));
        let operation = decision.operation.cloned();
        let report_only_denial = decision.report_only_denial;
        self.0.reported.lock().unwrap().push(Reported { operation, report_only_denial });
    }
}

impl Fixture {
    /// Tokens are required, and the scopes as well.
    pub(super) fn guarded(required_scopes: &str) -> Self {
        Self::guarded_with(required_scopes, |_| {})
    }

    /// The same, with other settings of the guard.
    pub(super) fn guarded_with(required_scopes: &str, change: impl FnOnce(&mut GuardSettings)) -> Self {
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
        let test_issuer =
            TestIssuer::new("https://issuer.example").with_algorithm(Algorithm::Es256).with_clock(clock.clone());
        let resource = ResourceUri::parse(TestIssuer::RESOURCE).unwrap();
        let log = Arc::new(Log::default());
        let authentication = match required_scopes {
            Some(_) => Authentication::Required(verifier(&test_issuer, &resource, &clock, change)),
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
        let sessions =
            SessionStore::new(session_settings, Arc::new(clock.clone()), Arc::clone(&log) as Arc<dyn SessionObserver>);
        let mut settings = EndpointSettings::new(ProtectedResource::new(guard).unwrap(), sessions.clone());
        settings.required_scopes = required;
        let token = required_scopes.map(|scopes| test_issuer.token().scope(scopes).sign());
        Self { test_issuer, clock, sessions, settings, inner: Inner::default(), log, token }
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
    pub(super) async fn send(&self, method: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Received {
        self.send_body(method, headers, Full::new(body.into())).await
    }

    /// POSTs a message as JSON.
    pub(super) async fn post(&self, headers: &[(&str, &str)], message: impl ToString) -> Received {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.send("POST", &headers, message.to_string()).await
    }

    /// Sends a request with any body, and reads the response.
    pub(super) async fn send_body<B>(&self, method: &str, headers: &[(&str, &str)], body: B) -> Received
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let response = self.start(method, headers, body).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Received { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// POSTs a message as JSON to an endpoint that is kept.
    pub(super) async fn post_through(
        &self,
        layer: &EndpointLayer,
        headers: &[(&str, &str)],
        message: impl ToString,
    ) -> Received {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let guarded = GuardLayer::new(Arc::clone(&self.settings.resource)).layer(layer.layer(self.inner.clone()));
        let request = self.request("POST", &headers, Full::new(Bytes::from(message.to_string())));
        let (parts, body) = guarded.oneshot(request).await.unwrap().into_parts();
        Received {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// Builds a request with the current token.
    pub(super) fn request<B>(&self, method: &str, headers: &[(&str, &str)], body: B) -> Request<B> {
        let mut request = Request::builder().method(method).uri("/mcp").header("host", "mcp.example.com");
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
    ) -> impl Future<Output = Result<Response<impl Body<Data = Bytes, Error = EndpointBodyError<Infallible>>>, Infallible>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let endpoint = EndpointLayer::new(self.settings.clone()).unwrap().layer(self.inner.clone());
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
        *self.log.decided.lock().unwrap().last().unwrap()
    }

    /// Returns the operation and report-only denial of the last request.
    pub(super) fn reported(&self) -> Reported {
        self.log.reported.lock().unwrap().last().unwrap().clone()
    }

    pub(super) fn ended(&self) -> Vec<EndReason> {
        self.log.ended.lock().unwrap().clone()
    }
}

/// A verifier for the tokens of this issuer and resource.
fn verifier(
    test_issuer: &TestIssuer,
    resource: &ResourceUri,
    clock: &ManualClock,
    change: impl FnOnce(&mut IssuerSettings),
) -> Arc<Verifier> {
    let mut issuer = IssuerSettings::new(test_issuer.issuer().clone());
    issuer.algorithms = AlgorithmSet::from_iter([Algorithm::Es256]);
    issuer.keys = KeySource::Fixed(JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap());
    change(&mut issuer);
    let control = tokio::runtime::Handle::current();
    let issuer = TrustedIssuer::new(issuer, Arc::new(ScriptedFetch::new()), Arc::new(clock.clone()), control).unwrap();
    Verifier::new(VerifierSettings::new(resource.clone()), vec![issuer], Arc::new(clock.clone())).unwrap()
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

/// An inner service that answers from a script, or with 200 `{}`, and records the requests.
#[derive(Clone, Default)]
pub(super) struct Inner(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    responses: VecDeque<Response<Full<Bytes>>>,
    seen: Vec<Seen>,
    silent: bool,
}

/// A request as the inner service received it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) era: Era,
    pub(super) subject: Option<String>,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Inner {
    /// Adds a response to the script.
    pub(super) fn add_response(&self, status: u16, headers: &[(&str, &str)], body: &'static str) {
        let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        self.0.lock().unwrap().responses.push_back(response.body(Full::new(body.into())).unwrap());
    }

    /// Adds an extension to the last response in the script.
    pub(super) fn with_extension<T: Clone + Send + Sync + 'static>(&self, extension: T) {
        self.0.lock().unwrap().responses.back_mut().unwrap().extensions_mut().insert(extension);
    }

    /// Delays all responses while `silent` is true.
    pub(super) fn set_silent(&self, silent: bool) {
        self.0.lock().unwrap().silent = silent;
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().seen.clone()
    }

    pub(super) fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }
}

impl Service<Admitted> for Inner {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: Admitted) -> Self::Future {
        let mut script = self.0.lock().unwrap();
        script.seen.push(Seen {
            method: admitted.method().clone(),
            headers: admitted.headers().clone(),
            body: admitted.body().clone(),
            era: admitted.era(),
            subject: admitted.caller().principal().and_then(|who| who.subject()).map(str::to_owned),
        });
        drop(script);
        let script = Arc::clone(&self.0);
        Box::pin(poll_fn(move |_| {
            let mut script = script.lock().unwrap();
            if script.silent {
                return Poll::Pending;
            }
            Poll::Ready(Ok(script.responses.pop_front().unwrap_or_else(|| Response::new(Full::new("{}".into())))))
        }))
    }
}

/// A body in several frames, without a declared length.
pub(super) struct Pieces(pub(super) VecDeque<Result<Bytes, &'static str>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.0.pop_front().map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// An `initialize` message.
pub(super) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}})
}

/// A request with the id 7.
pub(super) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

/// The same as a message of 2026-07-28.
pub(super) fn modern(method: &str, params: Value) -> Value {
    let mut message = request(method, params);
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
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
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);
