//! A guard in front of a service that records its requests.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::WWW_AUTHENTICATE,
};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use portcullis_metadata::{
    Challenge, JwkSet, ProtectedResourceMetadata, ResourceUri, Scopes, parse_challenges,
};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use portcullis_verifier::{
    IntrospectionSettings, IssuerSettings, KeySource, TrustedIssuer, Validation, Verifier,
    VerifierSettings,
};
use tokio::runtime::Handle;
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Authentication, Caller, Decision, DecisionSink, Guard, GuardLayer, GuardSettings,
    GuardSettingsError, Operation, ProtectedResource, Timing,
    authorize::{PathGlob, RouteRule},
};

pub(super) const RESOURCE: &str = "https://api.example.com/mcp";
pub(super) const METADATA_URL: &str =
    "https://api.example.com/.well-known/oauth-protected-resource/mcp";
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource/mcp";
pub(super) const ROOT_PATH: &str = "/.well-known/oauth-protected-resource";

pub(super) struct Setup {
    pub(super) test_issuer: TestIssuer,
    pub(super) clock: ManualClock,
    pub(super) sink: Arc<Recorder>,
    pub(super) inner: Inner,
    pub(super) settings: GuardSettings,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedDecision {
    pub(super) id: String,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) status: u16,
    pub(super) code: Option<&'static str>,
    pub(super) subject: Option<String>,
    pub(super) client_address: Option<String>,
    pub(super) operation: Option<Operation>,
    pub(super) report_only_denial: Option<&'static str>,
    pub(super) upstream: Option<Timing>,
    pub(super) verification: Option<Timing>,
}

#[derive(Default)]
pub(super) struct Recorder(Mutex<Vec<RecordedDecision>>);

impl DecisionSink for Recorder {
    fn decided(&self, decision: &Decision<'_>) {
        self.0.lock().push(RecordedDecision {
            id: decision.request_id.as_str().to_owned(),
            method: decision.method.clone(),
            path: decision.path.to_owned(),
            status: decision.status.as_u16(),
            code: decision.code,
            subject: decision
                .principal
                .and_then(|principal| principal.subject())
                .map(str::to_owned),
            client_address: decision.client_address.map(|peer| peer.to_string()),
            operation: decision.operation.cloned(),
            report_only_denial: decision.report_only_denial,
            upstream: decision.upstream,
            verification: decision.verification,
        });
    }
}

impl Recorder {
    pub(super) fn all(&self) -> Vec<RecordedDecision> {
        self.0.lock().clone()
    }

    /// Returns the decisions since the last call.
    pub(super) fn take(&self) -> Vec<RecordedDecision> {
        std::mem::take(&mut self.0.lock())
    }

    /// Returns the only decision so far.
    pub(super) fn only(&self) -> RecordedDecision {
        let all = self.all();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }
}

/// The inner service: records the head of each request, and responds 200 with `inner` and the given
/// headers.
#[derive(Clone, Default)]
pub(super) struct Inner {
    pub(super) seen: Arc<Mutex<Vec<Request<()>>>>,
    pub(super) headers: HeaderMap,
}

impl Inner {
    /// Takes the only request since the last call.
    pub(super) fn take_only(&self) -> Request<()> {
        let mut seen = self.seen.lock();
        assert_eq!(seen.len(), 1);
        seen.remove(0)
    }

    pub(super) fn count(&self) -> usize {
        self.seen.lock().len()
    }
}

impl Service<Request<()>> for Inner {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        self.seen.lock().push(request);
        let mut response = Response::new("inner".to_owned());
        *response.headers_mut() = self.headers.clone();
        ready(Ok(response))
    }
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let values: Vec<_> = self.headers.get_all(name).iter().collect();
        assert!(values.len() <= 1, "{name}: {values:?}");
        values.first().map(|value| value.to_str().unwrap())
    }

    /// Returns the only challenge, which has the scheme Bearer.
    pub(super) fn challenge(&self) -> Challenge {
        let values = self
            .headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .map(HeaderValue::as_bytes);
        let challenges = parse_challenges(values).unwrap();
        assert_eq!(challenges.len(), 1, "{challenges:?}");
        assert_eq!(challenges[0].scheme(), "Bearer");
        challenges[0].clone()
    }

    /// Returns the challenge's parameters, sorted, without the description.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let challenge = self.challenge();
        let mut parameters: Vec<_> = challenge
            .params()
            .filter(|(name, _)| *name != "error_description")
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        parameters.sort();
        parameters
    }
}

impl Setup {
    pub(super) fn new() -> Self {
        Self::at(RESOURCE)
    }

    /// Returns the set-up for this resource, with an issuer whose keys are configured.
    pub(super) fn at(resource: &str) -> Self {
        Self::with_issuer(resource, ScriptedFetch::new(), |settings, test_issuer| {
            settings.keys =
                KeySource::Fixed(JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap());
        })
    }

    /// With an issuer whose keys are fetched.
    pub(super) fn fetching(fetch: &ScriptedFetch) -> Self {
        Self::with_issuer(RESOURCE, fetch.clone(), |_, _| {})
    }

    /// With an issuer that introspects every token.
    pub(super) fn introspecting(fetch: &ScriptedFetch) -> Self {
        Self::with_issuer(RESOURCE, fetch.clone(), |settings, _| {
            settings.validation =
                Validation::Introspection(IntrospectionSettings::new("portcullis"));
        })
    }

    /// Returns the set-up for this resource, with one issuer whose settings `change` adapts.
    fn with_issuer(
        resource: &str,
        fetch: ScriptedFetch,
        change: impl FnOnce(&mut IssuerSettings, &TestIssuer),
    ) -> Self {
        let test_issuer = TestIssuer::new("https://issuer.example").with_resource(resource);
        let clock = ManualClock::new();
        let shared = Arc::new(clock.clone());
        let resource = ResourceUri::parse(resource).unwrap();
        let mut issuer = IssuerSettings::new(test_issuer.issuer().clone());
        change(&mut issuer, &test_issuer);
        let trusted =
            TrustedIssuer::new(issuer, Arc::new(fetch), shared.clone(), Handle::current()).unwrap();
        let verifier = Verifier::new(
            VerifierSettings::new(resource.clone()),
            vec![trusted],
            shared.clone(),
        );
        let metadata = ProtectedResourceMetadata::new(resource, vec![test_issuer.issuer().clone()]);
        let sink = Arc::new(Recorder::default());
        let mut settings =
            GuardSettings::new(metadata, Authentication::Required(verifier.unwrap())).unwrap();
        settings.realm = "test".to_owned();
        settings.clock = shared;
        settings.sink = sink.clone();
        Self {
            test_issuer,
            clock,
            sink,
            inner: Inner::default(),
            settings,
        }
    }

    pub(super) fn require(mut self, scopes: &str) -> Self {
        self.settings.required_scopes = Scopes::parse(scopes).unwrap();
        self
    }

    pub(super) fn route(mut self, methods: &[Method], path: &str, scopes: &str) -> Self {
        let path = PathGlob::parse(path).unwrap();
        let scopes = Scopes::parse(scopes).unwrap();
        self.settings.routes.push(RouteRule {
            methods: methods.to_vec(),
            path,
            scopes,
        });
        self
    }

    pub(super) fn resource(&self) -> Arc<ProtectedResource> {
        ProtectedResource::new(self.settings.clone()).unwrap()
    }

    pub(super) fn rejected(&self) -> GuardSettingsError {
        ProtectedResource::new(self.settings.clone()).unwrap_err()
    }

    pub(super) fn guard(&self) -> Guard<Inner> {
        GuardLayer::new(self.resource()).layer(self.inner.clone())
    }

    pub(super) async fn send(&self, request: Request<()>) -> Answer {
        let (parts, body) = self.guard().oneshot(request).await.unwrap().into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    /// Returns a valid token for the resource.
    pub(super) fn token(&self, scopes: &str) -> String {
        self.test_issuer.token().scope(scopes).sign()
    }
}

/// Returns a request to the resource's host.
pub(super) fn request(method: Method, path: &str) -> Request<()> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "api.example.com")
        .body(())
        .unwrap()
}

pub(super) trait With {
    fn with(self, name: &'static str, value: impl AsRef<[u8]>) -> Self;
    fn bearer(self, token: &str) -> Self;
}

impl With for Request<()> {
    fn with(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        let value = HeaderValue::from_bytes(value.as_ref()).unwrap();
        self.headers_mut()
            .append(HeaderName::from_static(name), value);
        self
    }

    fn bearer(self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }
}

pub(super) fn caller(request: &Request<()>) -> Caller {
    request.extensions().get::<Caller>().unwrap().clone()
}

pub(super) fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
