//! The fixture of the steps: an issuer, its tokens, a verifier, sessions, and the guard and
//! endpoint around a service that responds immediately.

use std::{
    convert::Infallible,
    future::Ready,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::Full;
use portcullis_endpoint::{
    Admitted, Endpoint, EndpointLayer, EndpointSettings, MessageRule, NameGlob,
};
use portcullis_guard::{
    Authentication, Decision, DecisionSink, Guard, GuardLayer, GuardSettings, ProtectedResource,
    authorize::ScopeEnforcer,
};
use portcullis_metadata::{
    AccessToken, JwkSet, ProtectedResourceMetadata, ResourceUri, Scopes, SystemClock,
};
use portcullis_session::{
    Identifier, InUse, Owner, SessionKey, SessionSettings, SessionStore, SessionTarget,
};
use portcullis_testkit::{ScriptedFetch, TestIssuer, TokenBuilder};
use portcullis_verifier::{
    IssuerSettings, KeySource, Principal, TrustedIssuer, Verifier, VerifierSettings,
};
use tower_layer::Layer as _;
use tower_service::Service;

use crate::josekit::Josekit;

const RESOURCE: &str = "https://mcp.example.com/mcp";
const SCOPES: &str = "openid profile mcp:tools";
/// The number of callers, each with a token and a session.
const CALLERS: usize = 64;
/// The body of each request.
const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#;

/// The parts that all steps share.
pub(crate) struct Fixture {
    test_issuer: TestIssuer,
    resource: ResourceUri,
    target: SessionTarget,
    store: SessionStore,
    required: Scopes,
    rule: MessageRule,
    runtime: tokio::runtime::Runtime,
    pub(crate) callers: Vec<Caller>,
}

/// A caller with a token and a session.
pub(crate) struct Caller {
    pub(crate) token: AccessToken,
    authorization: String,
    identifier: Identifier,
}

impl Fixture {
    /// Creates the callers and opens their sessions.
    pub(crate) fn new() -> Self {
        let clock = Arc::new(SystemClock::new());
        let test_issuer = TestIssuer::new("https://auth.example.com/realms/prod")
            .with_resource(RESOURCE)
            .with_clock(SystemClock::new());
        let resource = ResourceUri::parse(RESOURCE).expect("a resource");
        let settings = SessionSettings::new(SessionKey::random().expect("random bytes"));
        let store = SessionStore::builder(settings).clock(clock).build();
        let target = SessionTarget::from(resource.clone());
        let callers = (0..CALLERS)
            .map(|number| Caller::new(number, &test_issuer, &store, &target))
            .collect();
        let mut rule = MessageRule::for_method(NameGlob::parse("tools/call").expect("a pattern"));
        rule.name = Some(NameGlob::parse("admin_*").expect("a pattern"));
        rule.scopes = Scopes::parse("mcp:admin").expect("scopes");
        Self {
            test_issuer,
            resource,
            target,
            store,
            required: Scopes::parse("mcp:tools").expect("scopes"),
            rule,
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("a runtime"),
            callers,
        }
    }

    /// Returns a new verifier that caches this number of tokens.
    pub(crate) fn verifier(&self, cache_entries: usize) -> Arc<Verifier> {
        let clock = Arc::new(SystemClock::new());
        let mut settings = IssuerSettings::new(self.test_issuer.issuer().clone());
        settings.keys = KeySource::Fixed(
            JwkSet::parse(self.test_issuer.jwks_json().as_bytes()).expect("a key set"),
        );
        let fetch = Arc::new(ScriptedFetch::new());
        let control = self.runtime.handle().clone();
        let issuer =
            TrustedIssuer::new(settings, fetch, clock.clone(), control).expect("an issuer");
        let mut settings = VerifierSettings::new(self.resource.clone());
        settings.cache_entries = cache_entries;
        Verifier::new(settings, vec![issuer], clock).expect("a verifier")
    }

    /// Returns whether a principal is allowed to call the tool `add`. The layers evaluate rules in
    /// private code, so this uses the same public parts.
    pub(crate) fn allows(&self, principal: &Principal) -> bool {
        let matches =
            |glob: &Option<NameGlob>, text| glob.as_ref().is_none_or(|glob| glob.matches(text));
        let granted = principal.scopes();
        let is_concerned =
            matches(&self.rule.method, "tools/call") && matches(&self.rule.name, "add");
        granted.covers(&self.required) && (!is_concerned || granted.covers(&self.rule.scopes))
    }

    /// Resolves the session of the caller of this number.
    pub(crate) fn resolve(&self, principal: &Principal, number: usize) -> InUse {
        let owner = Owner::Subject {
            issuer: principal.issuer().as_str(),
            subject: principal.subject().expect("a subject"),
            client: principal.client(),
        };
        let identifier = &self.callers[number % self.callers.len()].identifier;
        self.store
            .resolve(
                &self.target,
                owner,
                principal.scopes(),
                identifier.as_bytes(),
            )
            .expect("a live session")
    }

    /// Returns the guard and the endpoint around [`Echo`].
    pub(crate) fn endpoint(&self, verifier: &Arc<Verifier>) -> Stack {
        let metadata = ProtectedResourceMetadata::new(
            self.resource.clone(),
            vec![self.test_issuer.issuer().clone()],
        );
        let authentication = Authentication::Required(Arc::clone(verifier));
        let mut settings = GuardSettings::new(metadata, authentication).expect("settings");
        settings.required_scopes = self.required.clone();
        settings.scopes_enforced_by = ScopeEnforcer::Inner;
        settings.sink = Arc::new(NoSink);
        let resource = ProtectedResource::new(settings).expect("a resource");
        let mut settings = EndpointSettings::new(Arc::clone(&resource), self.store.clone());
        settings.required_scopes = self.required.clone();
        settings.rules = vec![self.rule.clone()];
        let endpoint = EndpointLayer::new(settings)
            .expect("an endpoint")
            .layer(Echo);
        Stack(GuardLayer::new(resource).layer(endpoint))
    }

    /// Returns valid tokens that were not verified before.
    pub(crate) fn fresh_tokens(&self, count: usize) -> Vec<AccessToken> {
        (0..count)
            .map(|number| AccessToken::new(keycloak_token(&self.test_issuer, number).sign()))
            .collect()
    }

    /// Returns the token with one changed character in the middle of its signature.
    pub(crate) fn forged(token: &AccessToken) -> AccessToken {
        let (signed, signature) = token.secret().rsplit_once('.').expect("a compact token");
        let (first, second) = signature.split_at(signature.len() / 2);
        let changed = if second.starts_with('A') { 'B' } else { 'A' };
        AccessToken::new(format!("{signed}.{first}{changed}{}", &second[1..]))
    }

    /// Returns josekit's verifier with the issuer's key.
    pub(crate) fn josekit(&self) -> Josekit {
        Josekit::new(self.test_issuer.key().public_jwk())
    }
}

/// Returns a token of about the size of Keycloak's tokens.
fn keycloak_token(test_issuer: &TestIssuer, number: usize) -> TokenBuilder {
    test_issuer
        .token()
        .expires_in(3_600)
        .subject(&format!("5f0d3b1c-7a52-4d0e-9c58-{number:012}"))
        .scope(SCOPES)
        .claim("azp", "test-client")
        .claim("typ", "Bearer")
        .claim("sid", format!("d2f5a0de-11f3-4c0c-8f5a-{number:012}"))
}

impl Caller {
    fn new(
        number: usize,
        test_issuer: &TestIssuer,
        store: &SessionStore,
        target: &SessionTarget,
    ) -> Self {
        let token = keycloak_token(test_issuer, number).sign();
        let subject = format!("5f0d3b1c-7a52-4d0e-9c58-{number:012}");
        let owner = Owner::Subject {
            issuer: test_issuer.issuer().as_str(),
            subject: &subject,
            client: Some("test-client"),
        };
        let scopes = Scopes::parse(SCOPES).expect("scopes");
        let reservation = store.reserve(target, owner, &scopes).expect("capacity");
        let identifier = reservation
            .open(Box::from(*b"backend"), None)
            .expect("capacity")
            .identifier();
        Self {
            authorization: format!("Bearer {token}"),
            token: AccessToken::new(token),
            identifier,
        }
    }
}

/// The guard and the endpoint around a service that responds immediately.
pub(crate) struct Stack(Guard<Endpoint<Echo>>);

impl Stack {
    /// Handles one request up to the head of its response.
    pub(crate) fn handle(&self, caller: &Caller) {
        let request = Request::post("/mcp")
            .header("host", "mcp.example.com")
            .header(AUTHORIZATION, &caller.authorization)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", &*caller.identifier)
            .body(Full::new(Bytes::from_static(MESSAGE.as_bytes())))
            .expect("a request");
        let response = ready(self.0.clone().call(request)).expect("a response");
        assert!(response.status().is_success(), "{}", response.status());
    }
}

/// The service behind the endpoint, which responds with the body of the request.
#[derive(Clone)]
pub(crate) struct Echo;

impl Service<Admitted> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: Admitted) -> Self::Future {
        std::future::ready(Ok(Response::new(Full::new(admitted.body().clone()))))
    }
}

/// Drops all decisions.
struct NoSink;

impl DecisionSink for NoSink {
    fn decided(&self, _decision: &Decision<'_>) {}
}

/// Returns the output of a future that is ready at its first poll.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the future is not ready"),
    }
}
