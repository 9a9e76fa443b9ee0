//! A broker, an identity provider, a browser and a client.

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

/// A client, and the PKCE verifier of its request.
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) redirect_uri: String,
    pub(crate) verifier: PkceVerifier,
}

impl Client {
    pub(crate) fn new(id: &str, redirect_uri: &str) -> Self {
        Self {
            id: id.to_owned(),
            redirect_uri: redirect_uri.to_owned(),
            verifier: PkceVerifier::generate().unwrap(),
        }
    }

    /// Returns the parameters of its authorization request.
    pub(crate) fn request(&self) -> Vec<(&'static str, String)> {
        vec![
            ("response_type", "code".to_owned()),
            ("client_id", self.id.clone()),
            ("redirect_uri", self.redirect_uri.clone()),
            ("state", "client-state".to_owned()),
            (
                "code_challenge",
                self.verifier.challenge().as_str().to_owned(),
            ),
            ("code_challenge_method", "S256".to_owned()),
            ("resource", RESOURCE.to_owned()),
        ]
    }
}

/// A browser with cookies.
pub(crate) struct Browser<'s> {
    setup: &'s Setup,
    pub(crate) cookies: BTreeMap<String, String>,
    /// The headers of each form that it sends.
    pub(crate) form_headers: HeaderMap,
    /// The name of the provider at which it signs in.
    pub(crate) provider: &'static str,
}

impl<'s> Browser<'s> {
    pub(crate) fn new(setup: &'s Setup) -> Self {
        let mut form_headers = HeaderMap::new();
        form_headers.insert(header::ORIGIN, ISSUER.parse().unwrap());
        form_headers.insert("sec-fetch-site", "same-origin".parse().unwrap());
        Self {
            setup,
            cookies: BTreeMap::new(),
            form_headers,
            provider: "idp",
        }
    }

    /// Follows a sign-in. Returns the URL at the client to which the browser is redirected.
    pub(crate) async fn sign_in(&mut self, client: &Client) -> Url {
        let page = self.authorize(&client.request()).await;
        assert_eq!(page.status(), StatusCode::OK, "{page:?}");
        let url = self.approve(&page).await;
        let response = self.return_from(&url).await;
        location(&response)
    }

    pub(crate) async fn authorize(&mut self, params: &[(&str, String)]) -> Response<Bytes> {
        self.navigate(params, HeaderMap::new()).await
    }

    /// Opens the authorization page with further headers.
    pub(crate) async fn navigate(
        &mut self,
        params: &[(&str, String)],
        more: HeaderMap,
    ) -> Response<Bytes> {
        let mut headers = self.cookie_header();
        headers.extend(more);
        let path = format!("/oauth/authorize?{}", encode(params));
        let request = request(Method::GET, &path, headers, Bytes::new());
        let response = self.setup.send(request).await;
        self.keep_cookies(&response);
        response
    }

    /// Approves the request of a consent page. Returns the URL at the provider.
    pub(crate) async fn approve(&mut self, page: &Response<Bytes>) -> Url {
        self.approve_with(page, &[]).await
    }

    /// Approves the request of a consent page, with further fields of its form.
    pub(crate) async fn approve_with(
        &mut self,
        page: &Response<Bytes>,
        more: &[(&str, &str)],
    ) -> Url {
        let decision = format!("allow:{}", self.provider);
        let sealed = hidden(page, "request");
        let fields = [("request", &*sealed), ("decision", &*decision)];
        let fields: Vec<_> = fields.iter().chain(more).copied().collect();
        let response = self.post("/oauth/consent", &fields).await;
        assert_eq!(response.status(), StatusCode::OK, "{response:?}");
        let url = continued(&response);
        self.remember_nonce(&url);
        url
    }

    /// Lets the provider put the nonce of this request into its next ID token.
    pub(crate) fn remember_nonce(&self, url: &Url) {
        let mut providers = self.setup.providers.iter();
        let provider = providers
            .find(|provider| provider.endpoint("").origin() == url.origin())
            .expect("a URL at a provider");
        *provider.nonce.lock() = param(url, "nonce").unwrap();
    }

    /// Answers a consent page.
    pub(crate) async fn decide(
        &mut self,
        page: &Response<Bytes>,
        decision: &str,
    ) -> Response<Bytes> {
        let sealed = hidden(page, "request");
        self.post(
            "/oauth/consent",
            &[("request", &sealed), ("decision", decision)],
        )
        .await
    }

    /// Returns from the provider with a code.
    pub(crate) async fn return_from(&mut self, url: &Url) -> Response<Bytes> {
        let state = param(url, "state").unwrap();
        self.callback(&[("code", "provider-code"), ("state", &state)])
            .await
    }

    /// Returns from the provider with these parameters.
    pub(crate) async fn callback(&mut self, params: &[(&str, &str)]) -> Response<Bytes> {
        let path = format!("/oauth/callback/{}?{}", self.provider, encode(params));
        self.get(&path).await
    }

    /// Returns the sealed request of a new consent page.
    pub(crate) async fn consent_page(&mut self, client: &Client) -> String {
        let page = self.authorize(&client.request()).await;
        assert_eq!(page.status(), StatusCode::OK, "{page:?}");
        hidden(&page, "request")
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response<Bytes> {
        let request = request(Method::GET, path, self.cookie_header(), Bytes::new());
        let response = self.setup.send(request).await;
        self.keep_cookies(&response);
        response
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Response<Bytes> {
        let mut headers = self.cookie_header();
        headers.extend(self.form_headers.clone());
        let response = self.setup.send(form_request(path, headers, fields)).await;
        self.keep_cookies(&response);
        response
    }

    fn cookie_header(&self) -> HeaderMap {
        let pairs: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut headers = HeaderMap::new();
        if !pairs.is_empty() {
            headers.insert(header::COOKIE, pairs.join("; ").parse().unwrap());
        }
        headers
    }

    fn keep_cookies(&mut self, response: &Response<Bytes>) {
        for cookie in response.headers().get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            let pair = cookie.split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            assert!(name.starts_with("__Host-"), "{cookie}");
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

pub(crate) fn request(
    method: Method,
    path: &str,
    headers: HeaderMap,
    body: Bytes,
) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    *request.headers_mut() = headers;
    request
}

pub(crate) fn form_request(
    path: &str,
    mut headers: HeaderMap,
    fields: &[(&str, &str)],
) -> Request<Bytes> {
    let form = "application/x-www-form-urlencoded".parse().unwrap();
    headers.insert(header::CONTENT_TYPE, form);
    request(Method::POST, path, headers, Bytes::from(encode(fields)))
}

pub(crate) fn json_response(status: StatusCode, body: &Value) -> FetchResponse {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    FetchResponse {
        status,
        headers,
        body: body.to_string().into(),
        sent: Default::default(),
    }
}

pub(crate) fn encode<V: AsRef<str>>(params: &[(&str, V)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(params.iter().map(|(name, value)| (name, value.as_ref())))
        .finish()
}

pub(crate) fn json_of(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).expect("a JSON body")
}

pub(crate) fn text_of(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

/// Returns the target of a redirect.
pub(crate) fn location(response: &Response<Bytes>) -> Url {
    assert_eq!(response.status(), StatusCode::SEE_OTHER, "{response:?}");
    Url::parse(response.headers()[header::LOCATION].to_str().unwrap()).unwrap()
}

/// Returns the target of a page that continues elsewhere.
pub(crate) fn continued(page: &Response<Bytes>) -> Url {
    let text = text_of(page);
    let (_, rest) = text
        .split_once(r#"content="0;url="#)
        .expect("a page that continues");
    Url::parse(&unescape(rest.split_once('"').unwrap().0)).unwrap()
}

/// Returns the value of a hidden field.
pub(crate) fn hidden(page: &Response<Bytes>, name: &str) -> String {
    let text = text_of(page);
    let start = format!(r#"name="{name}" value=""#);
    let (_, rest) = text.split_once(&start).expect("a hidden field");
    unescape(rest.split_once('"').unwrap().0)
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// Returns a parameter of a URL's query.
pub(crate) fn param(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    pairs
        .find(|(found, _)| found == name)
        .map(|(_, value)| value.into_owned())
}

/// Returns the claims of an access token, without verifying it.
pub(crate) fn claims(tokens: &Value) -> Value {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let token = tokens["access_token"].as_str().unwrap();
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}
