//! Servers with one broker, its provider, and a browser that uses all of them.

use std::{collections::BTreeMap, net::SocketAddr};

use portcullis_broker::BrokerKeys;
use portcullis_devidp::{
    ClientAuthentication, ClientSettings, DevIdp, DevIdpSettings, GrantType, UserSettings,
};
use portcullis_metadata::{Secret, authorization::PkceVerifier};
use portcullis_scenarios::{
    HttpResponse, INITIALIZE, Portcullis, Redis, Request, Scratch, Signal, Upstream,
    wait_until_ready,
};
use serde_json::json;
use url::{Url, form_urlencoded};

/// The URL of all replicas. They listen on other ports.
const BASE_URL: &str = "http://127.0.0.1:3000";
const SECRET: &str = "secret-of-the-application";
const REDIRECT_URI: &str = "http://127.0.0.1:4321/callback";
const SESSION_KEY: &str = "the-common-key-0123456789abcdef0123456";

/// A configuration, and what it depends on.
pub(super) struct Configuration {
    pub(super) file: Scratch,
    _upstream: Upstream,
    _secrets: [Scratch; 3],
}

/// Replicas with a broker, and one client.
pub(super) struct Servers {
    programs: Vec<Portcullis>,
    configuration: Configuration,
    client: String,
}

/// The tokens of a response.
pub(super) struct Tokens {
    access: String,
    pub(super) refresh: String,
}

/// Starts a provider and an upstream, and returns the configuration of a server with a broker.
/// `more` follows the table `[shared]`.
pub(super) async fn configuration(redis: &Redis, more: &str) -> Configuration {
    let client = ClientSettings {
        redirect_uris: vec![format!("{BASE_URL}/oauth/callback/oidc")],
        grant_types: vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
        authentication: ClientAuthentication::SecretBasic(Secret::new(SECRET)),
        ..ClientSettings::with_secret("portcullis", Secret::new(SECRET))
    };
    let provider = DevIdp::bind(DevIdpSettings {
        clients: vec![client],
        users: vec![UserSettings::new("alice")],
        ..DevIdpSettings::default()
    })
    .await
    .unwrap();
    let issuer = provider.issuer().as_str().to_owned();
    tokio::spawn(provider.serve(std::future::pending()));
    let upstream = Upstream::start().await;
    let secrets = [
        Scratch::file("provider-secret", SECRET),
        Scratch::file("broker-keys", &BrokerKeys::generate().unwrap()),
        Scratch::file("session-keys", SESSION_KEY),
    ];
    let configuration = format!(
        r#"
        listen = "127.0.0.1:0"
        base_url = "{BASE_URL}"
        workers = 2

        [broker]
        keys = {{ file = "{keys}" }}

        [[broker.provider]]
        kind = "oidc"
        issuer = "{issuer}"
        client_id = "portcullis"
        client_secret = {{ file = "{secret}" }}

        [[resource]]
        endpoint = "/mcp"
        required_scopes = ["mcp:tools"]
        upstream = {upstream}

        [session]
        keys = [{{ file = "{session_keys}" }}]

        [shared]
        redis = "redis://{redis}"
        {more}
        "#,
        keys = secrets[1].as_str(),
        secret = secrets[0].as_str(),
        session_keys = secrets[2].as_str(),
        upstream = upstream.setting(),
        redis = redis.address(),
    );
    Configuration {
        file: Scratch::file("broker.toml", &configuration),
        _upstream: upstream,
        _secrets: secrets,
    }
}

impl Servers {
    pub(super) async fn start(redis: &Redis, count: usize) -> Self {
        let mut servers = Self {
            programs: Vec::new(),
            configuration: configuration(redis, "").await,
            client: String::new(),
        };
        for _ in 0..count {
            let program = servers.run().await;
            wait_until_ready(&program).await;
            servers.programs.push(program);
        }
        let registered = servers.register(0).await;
        assert_eq!(registered.status, 201, "{registered:?}");
        servers.client = registered.json()["client_id"].as_str().unwrap().to_owned();
        servers
    }

    async fn run(&self) -> Portcullis {
        Portcullis::start(&["serve", "--config", self.configuration.file.as_str()]).await
    }

    pub(super) fn program(&self, number: usize) -> &Portcullis {
        &self.programs[number]
    }

    /// Ends a replica with a signal and starts it again, without waiting until it is ready.
    pub(super) async fn restart(&mut self, number: usize, signal: Signal) {
        self.programs[number].signal(signal);
        let started = self.run().await;
        let ended = std::mem::replace(&mut self.programs[number], started);
        ended.wait().await;
    }

    /// Registers a client.
    pub(super) async fn register(&self, number: usize) -> HttpResponse {
        let metadata = json!({
            "redirect_uris": [REDIRECT_URI], "token_endpoint_auth_method": "none",
        });
        let request = Request::post("/oauth/register", metadata.to_string());
        request.send(self.programs[number].address()).await
    }

    /// Signs in with a new browser, each of whose requests goes to the next replica.
    pub(super) async fn sign_in(&self) -> Tokens {
        let verifier = PkceVerifier::generate().unwrap();
        let mut browser = Browser {
            servers: self,
            next: 0,
            cookies: BTreeMap::new(),
        };
        let mut url = Url::parse(BASE_URL)
            .unwrap()
            .join("/oauth/authorize")
            .unwrap();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client)
            .append_pair("redirect_uri", REDIRECT_URI)
            .append_pair("code_challenge", verifier.challenge().as_str())
            .append_pair("code_challenge_method", "S256");
        let page = browser.open(&url).await;
        let fields = [
            ("request", attribute(&page, "name=\"request\" value=\"")),
            ("decision", "allow:oidc".to_owned()),
        ];
        let page = browser
            .submit(&url.join("/oauth/consent").unwrap(), &fields)
            .await;
        let url = Url::parse(&attribute(&page, "content=\"0;url=")).unwrap();
        let page = browser.open(&url).await;
        let fields = [
            ("ticket", attribute(&page, "name=\"ticket\" value=\"")),
            ("user", "alice".to_owned()),
            ("decision", "allow".to_owned()),
        ];
        let action = attribute(&page, "<form method=\"post\" action=\"");
        let answer = browser.submit(&url.join(&action).unwrap(), &fields).await;
        let answer = browser.open(&location(&answer)).await;
        let client = location(&answer);
        let mut pairs = client.query_pairs();
        let code = pairs.find(|(name, _)| name == "code").unwrap().1;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", REDIRECT_URI),
            ("client_id", &self.client),
            ("code_verifier", verifier.secret()),
        ];
        Tokens::of(&self.post(1, "/oauth/token", &fields).await)
    }

    pub(super) async fn refresh(&self, number: usize, tokens: &Tokens) -> HttpResponse {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", tokens.refresh.as_str()),
            ("client_id", &self.client),
        ];
        self.post(number, "/oauth/token", &fields).await
    }

    pub(super) async fn revoke(&self, number: usize, tokens: &Tokens) {
        let fields = [
            ("token", tokens.refresh.as_str()),
            ("client_id", &self.client),
        ];
        let response = self.post(number, "/oauth/revoke", &fields).await;
        assert_eq!(response.status, 200, "{response:?}");
    }

    /// Sends an `initialize` request with the access token.
    pub(super) async fn try_token(&self, number: usize, tokens: &Tokens) -> HttpResponse {
        let request = Request::post("/mcp", INITIALIZE).bearer(&tokens.access);
        request.send(self.programs[number].address()).await
    }

    async fn post(&self, number: usize, path: &str, fields: &[(&str, &str)]) -> HttpResponse {
        let request = Request::new("POST", path)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(encode(fields));
        request.send(self.programs[number].address()).await
    }
}

impl Tokens {
    pub(super) fn of(response: &HttpResponse) -> Self {
        assert_eq!(response.status, 200, "{response:?}");
        let body = response.json();
        let token = |name: &str| body[name].as_str().unwrap().to_owned();
        Self {
            access: token("access_token"),
            refresh: token("refresh_token"),
        }
    }
}

/// A browser with cookies.
struct Browser<'s> {
    servers: &'s Servers,
    /// The number of the replica that gets the next request.
    next: usize,
    cookies: BTreeMap<String, String>,
}

impl Browser<'_> {
    async fn open(&mut self, url: &Url) -> HttpResponse {
        let target = &url[url::Position::BeforePath..];
        self.send(url, Request::without_host("GET", target)).await
    }

    /// Sends a form as a page of the same origin does.
    async fn submit(&mut self, action: &Url, fields: &[(&str, String)]) -> HttpResponse {
        let request = Request::without_host("POST", action.path())
            .header("Origin", action.origin().ascii_serialization())
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(encode(fields));
        self.send(action, request).await
    }

    async fn send(&mut self, url: &Url, mut request: Request) -> HttpResponse {
        request = request.header("Host", url.authority());
        let pairs = self.cookies.iter();
        let pairs: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !pairs.is_empty() {
            request = request.header("Cookie", pairs.join("; "));
        }
        let response = request.send(self.address(url)).await;
        for (name, value) in &response.headers {
            if name == "set-cookie" {
                let pair = value.split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    fn address(&mut self, url: &Url) -> SocketAddr {
        if url.as_str().starts_with(BASE_URL) {
            self.next = (self.next + 1) % self.servers.programs.len();
            return self.servers.programs[self.next].address();
        }
        url.socket_addrs(|| None).unwrap()[0]
    }
}

fn encode<V: AsRef<str>>(fields: &[(&str, V)]) -> String {
    let pairs = fields.iter().map(|(name, value)| (*name, value.as_ref()));
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// Returns the target of a redirect.
fn location(response: &HttpResponse) -> Url {
    assert!((302..=303).contains(&response.status), "{response:?}");
    Url::parse(response.header("location").unwrap()).unwrap()
}

/// Returns the text of a page between this text and the next quote.
fn attribute(page: &HttpResponse, before: &str) -> String {
    assert_eq!(page.status, 200, "{page:?}");
    let text = page.text();
    let (_, rest) = text.split_once(before).unwrap();
    let value = rest.split('"').next().unwrap();
    value
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}
