//! The server under test and a simple HTTP client.

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header::LOCATION};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use portcullis_devidp::{Control, DevIdp, DevIdpSettings};
use portcullis_metadata::authorization::{PkceChallenge, PkceVerifier};
use portcullis_testkit::ManualClock;
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot, task::JoinHandle};
use url::{Url, form_urlencoded};

pub(crate) const RESOURCE: &str = "http://127.0.0.1:3000/mcp";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:4321/callback";
pub(crate) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// A server that stops when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) issuer: String,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) control: Control,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server with changed settings. It stops on drop.
    pub(crate) async fn start(change: impl FnOnce(&mut DevIdpSettings)) -> Self {
        let clock = Arc::new(ManualClock::new());
        let mut settings = DevIdpSettings {
            clock: clock.clone(),
            ..DevIdpSettings::default()
        };
        change(&mut settings);
        let server = DevIdp::bind(settings).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        Self {
            address: server.address(),
            issuer: server.issuer().as_str().to_owned(),
            clock,
            control: server.control(),
            stop: Some(stop),
            task: tokio::spawn(server.serve(async {
                let _ = stopped.await;
            })),
        }
    }

    /// Starts a server with automatic consent.
    pub(crate) async fn with_auto_consent() -> Self {
        Self::start(|settings| settings.auto_consent = true).await
    }

    pub(crate) async fn shut_down(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    /// Sends a request over a new connection.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Response {
            status: head.status,
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Returns the path of an endpoint, which is below that of the issuer.
    pub(crate) fn path(&self, endpoint: &str) -> String {
        let issuer = Url::parse(&self.issuer).unwrap();
        format!("{}/{endpoint}", issuer.path().trim_end_matches('/'))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn register_with(&self, body: &Value) -> Response {
        self.send(Method::POST, "/register", &[JSON], &body.to_string())
            .await
    }

    /// Registers a public client with one loopback redirect URI and returns its identifier.
    pub(crate) async fn register(&self) -> String {
        let body = json!({
            "client_name": "Weather Notes",
            "redirect_uris": [REDIRECT],
            "token_endpoint_auth_method": "none",
        });
        let response = self.register_with(&body).await;
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
        response.json()["client_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn authorize(&self, parameters: &[(&str, &str)]) -> Response {
        self.get(&format!("/authorize?{}", encoded(parameters)))
            .await
    }

    /// Obtains a code from a server with automatic consent.
    pub(crate) async fn code(&self, client: &str, verifier: &Pkce) -> String {
        let response = self
            .authorize(&authorization_request(client, verifier.challenge()))
            .await;
        response
            .redirect_parameter("code")
            .unwrap_or_else(|| panic!("no code: {} {}", response.status, response.body))
    }

    /// Registers a public client for refresh tokens and obtains its first tokens.
    pub(crate) async fn refreshable(&self) -> (String, Value) {
        let body = json!({
            "redirect_uris": [REDIRECT],
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
        });
        let client = self.register_with(&body).await.json()["client_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let verifier = verifier();
        let parameters = changed(
            &authorization_request(&client, verifier.challenge()),
            "scope",
            "mcp:tools offline_access",
        );
        let code = self
            .authorize(&parameters)
            .await
            .redirect_parameter("code")
            .unwrap();
        let response = self.token(&token_request(&client, &code, &verifier)).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        (client, response.json())
    }

    pub(crate) async fn refresh(&self, client: &str, token: &str) -> Response {
        self.token(&[
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", token),
        ])
        .await
    }

    pub(crate) async fn token(&self, parameters: &[(&str, &str)]) -> Response {
        self.send(Method::POST, "/token", &[FORM], &encoded(parameters))
            .await
    }
}

/// Returns the parameters of a valid authorization request.
pub(crate) fn authorization_request<'a>(
    client: &'a str,
    challenge: &'a str,
) -> Vec<(&'a str, &'a str)> {
    vec![
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("state", "a state & more"),
        ("code_challenge", challenge),
        ("code_challenge_method", "S256"),
        ("resource", RESOURCE),
        ("scope", "mcp:tools"),
    ]
}

/// Returns the parameters of a valid token request of a public client.
pub(crate) fn token_request<'a>(
    client: &'a str,
    code: &'a str,
    verifier: &'a Pkce,
) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("code_verifier", verifier.secret()),
        ("redirect_uri", REDIRECT),
        ("resource", RESOURCE),
    ]
}

/// Returns the parameters with one changed, or removed if the value is `None`.
pub(crate) fn changed<'a>(
    parameters: &[(&'a str, &'a str)],
    name: &'a str,
    value: impl Into<Option<&'a str>>,
) -> Vec<(&'a str, &'a str)> {
    let others = parameters
        .iter()
        .copied()
        .filter(|(other, _)| *other != name);
    others
        .chain(value.into().map(|value| (name, value)))
        .collect()
}

pub(crate) fn encoded(parameters: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish()
}

/// A PKCE verifier and its challenge.
pub(crate) struct Pkce {
    verifier: PkceVerifier,
    challenge: PkceChallenge,
}

pub(crate) fn verifier() -> Pkce {
    let verifier = PkceVerifier::generate().unwrap();
    Pkce {
        challenge: verifier.challenge(),
        verifier,
    }
}

impl Pkce {
    pub(crate) fn secret(&self) -> &str {
        self.verifier.secret()
    }

    pub(crate) fn challenge(&self) -> &str {
        self.challenge.as_str()
    }
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{}",
            self.body
        );
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns a string member of a JSON response.
    pub(crate) fn text(&self, member: &str) -> String {
        self.json()[member]
            .as_str()
            .unwrap_or_else(|| panic!("no {member}: {}", self.body))
            .to_owned()
    }

    /// Returns the `error` member of a JSON response.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn location(&self) -> Option<Url> {
        self.headers
            .get(LOCATION)
            .map(|location| Url::parse(location.to_str().unwrap()).unwrap())
    }

    /// Returns a parameter of the redirect to the client.
    pub(crate) fn redirect_parameter(&self, name: &str) -> Option<String> {
        let location = self.location()?;
        location
            .query_pairs()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.into_owned())
    }

    /// Returns the ticket in the consent page.
    pub(crate) fn ticket(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"ticket\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    /// Returns the name and value of the cookie in the response.
    pub(crate) fn cookie(&self) -> String {
        self.header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    }
}

/// Returns the claims of a token without verification.
pub(crate) fn claims(token: &str) -> Value {
    let payload = URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1).unwrap())
        .unwrap();
    serde_json::from_slice(&payload).unwrap()
}
