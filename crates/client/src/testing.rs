//! What the tests of this crate share: a scripted network and a scripted person.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use portcullis_discovery::{
    BodyStream, BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, NetworkFailure, OpenResponse,
};
use portcullis_metadata::{Clock, UnixTime};
use url::Url;

use crate::{AuthorizationRequest, Interaction, InteractionError, RedirectParameters};

pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
pub(crate) const PRM: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
pub(crate) const ISSUER: &str = "https://auth.example.com";
pub(crate) const METADATA: &str = "https://auth.example.com/.well-known/oauth-authorization-server";
pub(crate) const REGISTER: &str = "https://auth.example.com/register";
pub(crate) const TOKEN: &str = "https://auth.example.com/token";

/// One answer.
pub(crate) struct Reply {
    status: u16,
    headers: HeaderMap,
    pieces: Vec<Bytes>,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: HeaderMap::new(), pieces: Vec::new() }
    }

    pub(crate) fn json(status: u16, body: impl ToString) -> Self {
        Self::status(status).body(&[body.to_string().as_bytes()]).header(header::CONTENT_TYPE, "application/json")
    }

    pub(crate) fn events(pieces: &[&str]) -> Self {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        Self::status(200).body(&pieces).header(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")
    }

    pub(crate) fn challenge() -> Self {
        let value = format!(r#"Bearer realm="mcp", resource_metadata="{PRM}", scope="mcp:tools""#);
        Self::status(401).header(header::WWW_AUTHENTICATE, &value)
    }

    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.insert(name, HeaderValue::from_str(value).unwrap());
        self
    }

    fn body(mut self, pieces: &[&[u8]]) -> Self {
        self.pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
        self
    }
}

type Answers = dyn Fn(&FetchRequest) -> Option<Reply> + Send + Sync;

/// A network that answers by a function, refuses the connection where that gives nothing, and keeps every request.
pub(crate) struct Network {
    answers: Box<Answers>,
    requests: Mutex<Vec<FetchRequest>>,
}

impl Network {
    pub(crate) fn new(answers: impl Fn(&FetchRequest) -> Option<Reply> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { answers: Box::new(answers), requests: Mutex::default() })
    }

    pub(crate) fn requests(&self) -> Vec<FetchRequest> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn to(&self, url: &str) -> Vec<FetchRequest> {
        self.requests().into_iter().filter(|request| request.url.as_str() == url).collect()
    }

    fn answer(&self, request: FetchRequest) -> Result<Reply, FetchError> {
        let reply = (self.answers)(&request);
        self.requests.lock().unwrap().push(request);
        reply.ok_or_else(|| FetchError::network(NetworkFailure::Connect))
    }
}

impl Fetch for Network {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let reply = self.answer(request)?;
            let status = StatusCode::from_u16(reply.status).unwrap();
            Ok(FetchResponse { status, headers: reply.headers, body: reply.pieces.concat().into() })
        })
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        Box::pin(async move {
            let reply = self.answer(request)?;
            let status = StatusCode::from_u16(reply.status).unwrap();
            let body = Box::new(Pieces(reply.pieces.into_iter()));
            Ok(OpenResponse { status, headers: reply.headers, body })
        })
    }
}

struct Pieces(std::vec::IntoIter<Bytes>);

impl BodyStream for Pieces {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async { self.0.next().map(Ok) })
    }
}

/// Documents as a well-behaved resource and authorization server have them.
pub(crate) fn well_behaved(request: &FetchRequest) -> Option<Reply> {
    Some(match request.url.as_str() {
        RESOURCE if !request.headers.contains_key(header::AUTHORIZATION) => Reply::challenge(),
        PRM => Reply::json(200, prm(RESOURCE)),
        METADATA => Reply::json(200, metadata()),
        REGISTER => Reply::json(201, r#"{"client_id":"registered"}"#),
        TOKEN => Reply::json(200, r#"{"access_token":"hush","token_type":"Bearer","expires_in":300}"#),
        _ => return None,
    })
}

pub(crate) fn prm(resource: &str) -> serde_json::Value {
    serde_json::json!({ "resource": resource, "authorization_servers": [ISSUER] })
}

pub(crate) fn metadata() -> serde_json::Value {
    serde_json::json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://auth.example.com/authorize",
        "token_endpoint": TOKEN,
        "registration_endpoint": REGISTER,
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

/// A person who answers with what a function makes of the state.
pub(crate) struct Person {
    answer: Box<dyn Fn(&str) -> String + Send + Sync>,
    redirect_uri: Url,
    visited: Mutex<Vec<Url>>,
    visits: AtomicUsize,
}

impl Person {
    /// Consents, with the right `iss`.
    pub(crate) fn consents() -> Arc<Self> {
        Self::answers(|state| format!("code=the-code&state={state}&iss=https%3A%2F%2Fauth.example.com"))
    }

    pub(crate) fn answers(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Arc<Self> {
        let redirect_uri = Url::parse("http://127.0.0.1:7/callback").unwrap();
        Arc::new(Self {
            answer: Box::new(answer),
            redirect_uri,
            visited: Mutex::default(),
            visits: AtomicUsize::new(0),
        })
    }

    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::Relaxed)
    }

    pub(crate) fn last_visit(&self) -> Url {
        self.visited.lock().unwrap().last().unwrap().clone()
    }
}

impl Interaction for Person {
    fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        self.visits.fetch_add(1, Ordering::Relaxed);
        self.visited.lock().unwrap().push(request.url().clone());
        let state = request.url().query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        let answer = RedirectParameters::parse(&(self.answer)(&state)).unwrap();
        Box::pin(async {
            // Time passes before a person answers: others get their turn.
            tokio::task::yield_now().await;
            Ok(answer)
        })
    }
}

/// A clock that is moved by hand, and begins where [`Still`] stands.
pub(crate) struct ByHand(AtomicU64);

impl ByHand {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_000)))
    }

    pub(crate) fn set(&self, secs: u64) {
        self.0.store(secs, Ordering::Relaxed);
    }
}

impl Clock for ByHand {
    fn now(&self) -> UnixTime {
        UnixTime::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// A directory of a test's own, gone with it.
pub(crate) struct Scratch(std::path::PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("portcullis-client-{}-{number}", std::process::id()));
        // What a test of the same number has left that was killed.
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The fields of a form.
pub(crate) fn form(request: &FetchRequest) -> std::collections::HashMap<String, String> {
    url::form_urlencoded::parse(&request.body).into_owned().collect()
}

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> UnixTime {
        UnixTime::from_secs(1_000)
    }

    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}
