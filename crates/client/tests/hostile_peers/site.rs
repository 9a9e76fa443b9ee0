//! [`Site`]: a resource and authorization server on loopback, with configurable responses.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use portcullis_client::{
    Authorizer, AuthorizerSettings, ClientError, Interaction, LoopbackRedirect, ResourceToken,
    StartUrl,
};
use portcullis_discovery::{Fetch, FetchRequest, FetchSettings, HttpFetch, UrlPolicy};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

pub(crate) const PRM: &str = "/.well-known/oauth-protected-resource/mcp";
pub(crate) const METADATA: &str = "/.well-known/oauth-authorization-server";

/// The response for a path.
#[derive(Clone)]
struct Response {
    /// The head and the body.
    bytes: Vec<u8>,
    /// What is then sent endlessly, unless it is empty.
    repeated: &'static [u8],
}

type Responses = Arc<Mutex<HashMap<String, Response>>>;

/// A resource and authorization server on loopback. It behaves correctly unless a test changes a
/// response.
pub(crate) struct Site {
    pub(crate) base: String,
    responses: Responses,
    /// The paths of the requests, in order.
    pub(crate) requested: Arc<Mutex<Vec<String>>>,
}

fn json(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").into()
}

pub(crate) fn redirect(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into()
}

impl Site {
    /// Starts a site that behaves correctly.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let site = Self {
            base,
            responses: Responses::default(),
            requested: Arc::default(),
        };
        let base = &site.base;
        let challenge = format!("Bearer resource_metadata=\"{base}{PRM}\"");
        site.challenge(&challenge);
        site.json(
            PRM,
            &format!(r#"{{"resource":"{base}/mcp","authorization_servers":["{base}"]}}"#),
        );
        site.json(METADATA, &site.metadata());
        site.json("/register", r#"{"client_id":"c"}"#);
        site.json("/token", r#"{"access_token":"hush","token_type":"Bearer"}"#);
        let responses = site.responses.clone();
        let requested = site.requested.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, responses.clone(), requested.clone()));
            }
        });
        site
    }

    /// The correct metadata of the authorization server.
    pub(crate) fn metadata(&self) -> String {
        let base = &self.base;
        format!(
            r#"{{"issuer":"{base}","authorization_endpoint":"{base}/authorize","token_endpoint":"{base}/token",
            "registration_endpoint":"{base}/register","response_types_supported":["code"],
            "code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true}}"#
        )
    }

    pub(crate) fn challenge(&self, value: &str) {
        let response = format!(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {value}\r\nContent-Length: 0\r\n\r\n"
        );
        self.put("/mcp", response.into(), b"");
    }

    pub(crate) fn json(&self, path: &str, body: &str) {
        self.put(path, json(body), b"");
    }

    /// Responds to requests for a path with these bytes, and then endlessly with `repeated` unless
    /// that is empty.
    pub(crate) fn put(&self, path: &str, bytes: Vec<u8>, repeated: &'static [u8]) {
        self.responses
            .lock()
            .insert(path.to_owned(), Response { bytes, repeated });
    }

    pub(crate) fn remove(&self, path: &str) {
        self.responses.lock().remove(path);
    }

    /// Changes the server's metadata.
    pub(crate) fn change(&self, from: &str, to: &str) {
        let changed = self.metadata().replace(from, to);
        assert_ne!(changed, self.metadata());
        self.json(METADATA, &changed);
    }

    pub(crate) fn was_requested(&self, path: &str) -> bool {
        self.requested
            .lock()
            .iter()
            .any(|requested| requested == path)
    }

    fn start(&self) -> StartUrl {
        StartUrl::parse(&format!("{}/mcp", self.base)).unwrap()
    }

    /// Signs in. The redirect has the parameters that `redirect` creates from the state.
    pub(crate) async fn sign_in(
        &self,
        redirect: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Result<ResourceToken, ClientError> {
        let opened = Arc::new(Mutex::new(Vec::new()));
        let seen = opened.clone();
        let redirect = Arc::new(redirect);
        let browser = LoopbackRedirect::bind(move |one_time| {
            let (one_time, seen, redirect) = (one_time.clone(), seen.clone(), redirect.clone());
            tokio::spawn(async move {
                let page = fetcher()
                    .fetch(FetchRequest::get(one_time, UrlPolicy::Operator))
                    .await
                    .unwrap();
                let url = Url::parse(page.headers["location"].to_str().unwrap()).unwrap();
                seen.lock().push(url.clone());
                let value = |name| {
                    url.query_pairs()
                        .find(|(found, _)| found == name)
                        .unwrap()
                        .1
                        .into_owned()
                };
                let target = format!("{}?{}", value("redirect_uri"), redirect(&value("state")));
                fetcher()
                    .fetch(FetchRequest::get(
                        Url::parse(&target).unwrap(),
                        UrlPolicy::Operator,
                    ))
                    .await
            });
        });
        let interaction = Arc::new(browser.await.unwrap());
        let result = self.authorize(interaction).await;
        // Every opened URL belongs to this server, even if the sign-in failed.
        assert!(
            opened
                .lock()
                .iter()
                .all(|url| url.as_str().starts_with(&self.base))
        );
        result
    }

    pub(crate) async fn authorize(
        &self,
        interaction: Arc<dyn Interaction>,
    ) -> Result<ResourceToken, ClientError> {
        let settings = AuthorizerSettings::default();
        Authorizer::builder(interaction)
            .fetch(fetcher())
            .settings(settings)
            .build()
            .unwrap()
            .authorize(&self.start())
            .await
    }

    /// Returns the parameters of a correct redirect.
    fn consent(&self) -> impl Fn(&str) -> String + Send + Sync + 'static {
        let base = self.base.clone();
        move |state| format!("code=the-code&state={state}&iss={base}")
    }

    /// Signs in with a correct redirect and returns the code of the error.
    pub(crate) async fn error_code(&self) -> Option<&'static str> {
        let result = self.sign_in(self.consent()).await;
        let error = result.err()?;
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hush"), "{shown}");
        Some(error.code())
    }
}

/// Answers the requests of one connection with the configured responses.
async fn serve(
    mut stream: TcpStream,
    responses: Responses,
    requested: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        let target = head.split(' ').nth(1).unwrap_or("");
        let path = target.split('?').next().unwrap_or("").to_owned();
        requested.lock().push(path.clone());
        let response = responses.lock().get(&path).cloned();
        let Some(Response { bytes, repeated }) = response else {
            stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .await?;
            continue;
        };
        stream.write_all(&bytes).await?;
        while !repeated.is_empty() {
            stream.write_all(repeated).await?;
        }
    }
}

pub(crate) fn fetcher() -> Arc<HttpFetch> {
    Arc::new(HttpFetch::new(FetchSettings::default()).unwrap())
}
