//! A broker and its identity providers, a client with a browser, and their messages.

// The paths are needed because the benchmark and a fuzz target include this file by its path.
#[path = "browser.rs"]
mod browser;
#[path = "messages.rs"]
mod messages;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use parking_lot::Mutex;
use portcullis_broker::{
    Broker, BrokerEvent, BrokerKeys, BrokerObserver, BrokerParts, BrokerProvider, BrokerResource,
    BrokerSettings, ClientSettings, Ends, Lifetimes, PageSettings,
};
use portcullis_discovery::{FetchResponse, UrlPolicy};
use portcullis_identity_provider::{ProviderKind, ProviderSettings};
use portcullis_metadata::{Issuer, ResourceUri, Scopes, Secret, authorization::PkceVerifier};
use portcullis_state_store::records::{MemoryRecords, RecordStore};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer, TokenBuilder, form};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use url::Url;

pub(crate) use self::{
    browser::{Browser, Client},
    messages::*,
};

pub(crate) const ISSUER: &str = "https://mcp.example.com";
pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
pub(crate) const PROVIDER: &str = "https://idp.example";
pub(crate) const PROVIDER_CLIENT: &str = "broker-at-idp";

/// A broker with one resource and one provider, `idp`.
pub(crate) struct Setup {
    pub(crate) broker: Arc<Broker>,
    pub(crate) clock: ManualClock,
    pub(crate) network: ScriptedFetch,
    /// The first provider.
    pub(crate) provider: Arc<Provider>,
    /// All providers, in the order of the settings.
    pub(crate) providers: Vec<Arc<Provider>>,
    pub(crate) records: Arc<dyn RecordStore>,
    pub(crate) events: Arc<Events>,
    pub(crate) settings: BrokerSettings,
    keys: Arc<BrokerKeys>,
    pub(crate) ends: Arc<Ends>,
    /// The last address from which a request came.
    address: AtomicU32,
}

/// The identity provider: what it says about the user who signs in next.
pub(crate) struct Provider {
    pub(crate) issuer: TestIssuer,
    pub(crate) user: Mutex<Value>,
    /// Claims of ID tokens that replace others. `null` removes one.
    pub(crate) id_token: Mutex<Value>,
    /// Signs ID tokens.
    pub(crate) sign: Mutex<Sign>,
    /// Members of token responses that replace others.
    pub(crate) response: Mutex<Value>,
    /// The nonce of the last authorization request.
    pub(crate) nonce: Mutex<String>,
}

/// Signs an ID token.
pub(crate) type Sign = Box<dyn Fn(TokenBuilder) -> String + Send>;

/// Records the events of the broker as text.
#[derive(Default)]
pub(crate) struct Events(Mutex<Vec<String>>);

impl BrokerObserver for Events {
    fn observe(&self, event: &BrokerEvent<'_>) {
        self.0.lock().push(format!("{event:?}"));
    }
}

impl Events {
    /// Returns the number of events that contain a text.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.0
            .lock()
            .iter()
            .filter(|event| event.contains(text))
            .count()
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        self.0.lock().iter().any(|event| event.contains(text))
    }

    /// Returns all events, one a line.
    pub(crate) fn all(&self) -> String {
        self.0.lock().join("\n")
    }
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut BrokerSettings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let clock = ManualClock::new();
        let records = Arc::new(MemoryRecords::new(Arc::new(clock.clone())));
        let keys = BrokerKeys::parse(&BrokerKeys::generate().unwrap()).unwrap();
        Self::assemble(settings, clock, records, Arc::new(keys))
    }

    /// Returns another broker over the same records and keys.
    pub(crate) fn replica(&self) -> Self {
        self.restarted(|_| ())
    }

    /// Returns a broker with other settings over the same records and keys, as after a restart.
    pub(crate) fn restarted(&self, change: impl FnOnce(&mut BrokerSettings)) -> Self {
        let mut settings = self.settings.clone();
        change(&mut settings);
        let (records, keys) = (Arc::clone(&self.records), Arc::clone(&self.keys));
        Self::assemble(settings, self.clock.clone(), records, keys)
    }

    /// Returns a broker over other records.
    pub(crate) fn over(
        records: impl FnOnce(ManualClock) -> Arc<dyn RecordStore>,
        change: impl FnOnce(&mut BrokerSettings),
    ) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let clock = ManualClock::new();
        let keys = BrokerKeys::parse(&BrokerKeys::generate().unwrap()).unwrap();
        Self::assemble(settings, clock.clone(), records(clock), Arc::new(keys))
    }

    pub(crate) fn assemble(
        settings: BrokerSettings,
        clock: ManualClock,
        records: Arc<dyn RecordStore>,
        keys: Arc<BrokerKeys>,
    ) -> Self {
        let network = ScriptedFetch::new();
        let providers: Vec<_> = settings
            .providers
            .iter()
            .map(|provider| Provider::new(&network, &clock, provider.settings.issuer.as_str()))
            .collect();
        let events = Arc::new(Events::default());
        let ends = Arc::new(Ends::default());
        let parts = BrokerParts {
            keys: Arc::clone(&keys),
            records: Arc::clone(&records),
            ends: Arc::clone(&ends),
            provider_fetches: settings
                .providers
                .iter()
                .map(|_| Arc::new(network.clone()) as _)
                .collect(),
            document_fetch: Arc::new(network.clone()),
            clock: Arc::new(clock.clone()),
            control: Handle::current(),
            observer: Arc::clone(&events) as _,
        };
        Self {
            broker: Broker::new(settings.clone(), parts).unwrap(),
            clock,
            network,
            provider: Arc::clone(&providers[0]),
            providers,
            records,
            events,
            settings,
            keys,
            ends,
            address: AtomicU32::new(u32::from(Ipv4Addr::new(192, 0, 2, 0))),
        }
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Sends a request from an address of its own, so that no limit of an address is reached.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Response<Bytes> {
        let address = self.address.fetch_add(1, Ordering::Relaxed);
        let address = IpAddr::from(Ipv4Addr::from(address));
        self.broker.handle(request, address).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response<Bytes> {
        self.send(request(Method::GET, path, HeaderMap::new(), Bytes::new()))
            .await
    }

    /// Sends a form without cookies.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response<Bytes> {
        self.send(form_request(path, HeaderMap::new(), fields))
            .await
    }

    /// Registers a client.
    pub(crate) async fn register(&self, metadata: Value) -> Response<Bytes> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        let body = Bytes::from(metadata.to_string());
        self.send(request(Method::POST, "/oauth/register", headers, body))
            .await
    }

    /// Registers a public client with a loopback redirect URI.
    pub(crate) async fn client(&self) -> Client {
        let uri = "http://127.0.0.1:4321/callback";
        let metadata = json!({
            "client_name": "Test client",
            "redirect_uris": [uri],
            "token_endpoint_auth_method": "none",
        });
        self.client_with(metadata).await
    }

    /// Registers another public client. Its metadata differs, because equal registrations get the
    /// same client.
    pub(crate) async fn other_client(&self) -> Client {
        let metadata = json!({
            "redirect_uris": ["http://127.0.0.1/"], "token_endpoint_auth_method": "none",
        });
        self.client_with(metadata).await
    }

    /// Registers a client. It uses the first redirect URI.
    pub(crate) async fn client_with(&self, metadata: Value) -> Client {
        let redirect_uri = metadata["redirect_uris"][0].as_str().unwrap().to_owned();
        let response = self.register(metadata).await;
        assert_eq!(response.status(), StatusCode::CREATED, "{response:?}");
        let id = json_of(&response)["client_id"].as_str().unwrap().to_owned();
        Client {
            id,
            redirect_uri,
            verifier: PkceVerifier::generate().unwrap(),
        }
    }

    /// Follows a sign-in to the code, and exchanges it.
    pub(crate) async fn sign_in(&self, client: &Client) -> Value {
        let mut browser = Browser::new(self);
        let location = browser.sign_in(client).await;
        let code = param(&location, "code").expect("a code");
        let response = self.exchange(client, &code).await;
        assert_eq!(response.status(), StatusCode::OK, "{response:?}");
        json_of(&response)
    }

    pub(crate) async fn exchange(&self, client: &Client, code: &str) -> Response<Bytes> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &client.redirect_uri),
            ("client_id", &client.id),
            ("code_verifier", client.verifier.secret()),
        ];
        self.post("/oauth/token", &fields).await
    }

    pub(crate) async fn refresh(&self, client: &Client, token: &str) -> Response<Bytes> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("client_id", &client.id),
        ];
        self.post("/oauth/token", &fields).await
    }
}

/// Returns a provider with this name and issuer.
pub(crate) fn provider(name: &str, kind: ProviderKind, issuer: &str) -> BrokerProvider {
    let issuer = Issuer::parse(issuer).unwrap();
    let secret = Secret::new("secret-at-idp");
    let mut settings = ProviderSettings::new(name, kind, issuer, PROVIDER_CLIENT, secret);
    settings.url_policy = UrlPolicy::Operator;
    BrokerProvider {
        settings,
        allow: Vec::new(),
        grants: Vec::new(),
    }
}

/// Returns a resource with this identifier.
pub(crate) fn resource(uri: &str) -> BrokerResource {
    let scopes = |text| Scopes::parse(text).unwrap();
    BrokerResource {
        uri: ResourceUri::parse(uri).unwrap(),
        name: Some("Example tools".into()),
        scopes: scopes("mcp:tools mcp:admin"),
        default_scopes: scopes("mcp:tools"),
    }
}

pub(crate) fn settings() -> BrokerSettings {
    BrokerSettings {
        issuer: Issuer::parse(ISSUER).unwrap(),
        resources: vec![resource(RESOURCE)],
        default_resource: None,
        providers: vec![provider("idp", ProviderKind::Oidc, PROVIDER)],
        clients: ClientSettings::default(),
        pages: PageSettings::default(),
        lifetimes: Lifetimes::default(),
        claims: BTreeMap::new(),
        introspection_clients: Vec::new(),
        max_token: 16 * 1024,
    }
}

impl Provider {
    fn new(network: &ScriptedFetch, clock: &ManualClock, issuer: &str) -> Arc<Self> {
        let issuer = TestIssuer::new(issuer).with_clock(clock.clone());
        network.publish(&issuer);
        // OpenID Connect Discovery 1.0 section 4.
        let metadata = issuer.metadata_json();
        network.serve(
            issuer.endpoint(".well-known/openid-configuration"),
            200,
            metadata,
        );
        let token_endpoint = issuer.endpoint("token");
        let provider = Arc::new(Self {
            issuer,
            user: Mutex::new(json!({ "sub": "alice", "sid": "session-1" })),
            id_token: Mutex::new(json!({})),
            sign: Mutex::new(Box::new(|token| token.sign())),
            response: Mutex::new(json!({})),
            nonce: Mutex::new(String::new()),
        });
        let answering = Arc::clone(&provider);
        network.respond(token_endpoint, move |request| {
            let fields = form(request);
            let is_refresh = fields
                .get("grant_type")
                .is_some_and(|grant| grant == "refresh_token");
            Ok(answering.tokens(is_refresh))
        });
        provider
    }

    /// Returns the URL of an endpoint.
    pub(crate) fn endpoint(&self, name: &str) -> Url {
        self.issuer.endpoint(name)
    }

    fn tokens(&self, is_refresh: bool) -> FetchResponse {
        let mut token = self.issuer.token().audience(PROVIDER_CLIENT).typ("JWT");
        token = token.without("client_id").without("scope");
        for (name, value) in self.user.lock().as_object().unwrap() {
            token = token.claim(name, value.clone());
        }
        if !is_refresh {
            token = token.claim("nonce", self.nonce.lock().clone());
        }
        for (name, value) in self.id_token.lock().as_object().unwrap() {
            token = match value {
                Value::Null => token.without(name),
                value => token.claim(name, value.clone()),
            };
        }
        let mut body = json!({
            "access_token": "provider-access-token",
            "refresh_token": "provider-refresh-token",
            "token_type": "Bearer",
            "expires_in": 3600,
            "id_token": (self.sign.lock())(token),
        });
        for (name, value) in self.response.lock().as_object().unwrap() {
            body[name] = value.clone();
        }
        json_response(StatusCode::OK, &body)
    }
}
