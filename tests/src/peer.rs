use std::{collections::HashMap, convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::{Url, form_urlencoded};

/// An MCP server and authorization server for tests of the client. It behaves correctly and
/// consents automatically, unless a script responds. Every path without another meaning is a
/// protected MCP endpoint, whose metadata names that path as the resource.
pub struct Peer {
    base: String,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<PeerRequest>>>,
}

/// A request that a peer received.
#[derive(Clone, Debug)]
pub struct PeerRequest {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The parameters of the query.
    pub query: HashMap<String, String>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// The peer's origin.
    pub base: String,
}

/// The response of a script.
pub type PeerResponse = Response<String>;

const METADATA: &str = "/.well-known/oauth-authorization-server";
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

impl Peer {
    /// Starts a peer on a free port. If `script` returns `None`, the default response is sent.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub async fn start(
        script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static,
    ) -> Self {
        Self::serve(None, script).await
    }

    /// As [`start`](Self::start), for a peer that is reachable at this origin through a proxy.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub async fn start_as(
        origin: &str,
        script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Some(origin.to_owned()), script).await
    }

    /// Starts a peer that is known by this origin, or by its address.
    async fn serve(
        origin: Option<String>,
        script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let base = origin.unwrap_or_else(|| format!("http://{address}"));
        let peer = Self {
            base: base.clone(),
            address,
            requests: Arc::default(),
        };
        let requests = Arc::clone(&peer.requests);
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let requests = Arc::clone(&requests);
                let script = Arc::clone(&script);
                let base = base.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let requests = Arc::clone(&requests);
                    let script = Arc::clone(&script);
                    let base = base.clone();
                    async move {
                        let request = PeerRequest::read(request, base).await;
                        requests.lock().push(request.clone());
                        let response =
                            script(&request).unwrap_or_else(|| request.default_response());
                        Ok::<_, Infallible>(response.map(|body| Full::new(Bytes::from(body))))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        peer
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a URL of the peer.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the requests for this path, in order.
    ///
    /// # Panics
    /// Panics if the peer has panicked.
    pub fn requests(&self, path: &str) -> Vec<PeerRequest> {
        self.requests
            .lock()
            .iter()
            .filter(|request| request.path == path)
            .cloned()
            .collect()
    }
}

impl PeerRequest {
    /// Reads a request with its whole body.
    async fn read(request: Request<Incoming>, base: String) -> Self {
        let (head, body) = request.into_parts();
        let authorization = head
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        Self {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect(),
            authorization: authorization.map(str::to_owned),
            body: body
                .collect()
                .await
                .map(|body| body.to_bytes().to_vec())
                .unwrap_or_default(),
            base,
        }
    }

    /// Returns the fields of a form in the body.
    pub fn form(&self) -> HashMap<String, String> {
        form_urlencoded::parse(&self.body).into_owned().collect()
    }

    /// Returns the body as JSON, or null if it is not JSON.
    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the metadata of the authorization server.
    pub fn server_metadata(&self) -> Value {
        let base = &self.base;
        json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    /// Returns the metadata of a resource.
    pub fn resource_metadata(&self, resource: &str) -> Value {
        json!({ "resource": resource, "authorization_servers": [self.base] })
    }

    /// Returns whether this is a request for the authorization server's metadata.
    pub fn is_for_server_metadata(&self) -> bool {
        self.path == METADATA
    }

    /// Returns whether this is a request for the metadata of the resource at this path.
    pub fn is_for_resource_metadata(&self, path: &str) -> bool {
        self.path.strip_prefix(RESOURCE_METADATA) == Some(path.trim_end_matches('/'))
    }

    /// Returns a response with JSON and status 200.
    ///
    /// # Panics
    /// Never panics, because the head is well-formed.
    pub fn json(&self, body: impl ToString) -> PeerResponse {
        let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
        response.body(body.to_string()).expect("a response")
    }

    /// Returns the response with the result of a JSON-RPC request.
    pub fn result(&self, result: Value) -> PeerResponse {
        self.json(json!({ "jsonrpc": "2.0", "id": self.message()["id"], "result": result }))
    }

    /// Returns the response of a peer that behaves correctly.
    fn default_response(&self) -> PeerResponse {
        match self.path.as_str() {
            METADATA => self.json(self.server_metadata()),
            "/register" => self.json(json!({ "client_id": "me", "redirect_uris": self.message()["redirect_uris"] })),
            "/authorize" => self.grant(),
            "/token" => self.json(json!({
                "access_token": "the-token", "token_type": "Bearer", "expires_in": 300, "refresh_token": "the-refresh",
            })),
            path if path.starts_with(RESOURCE_METADATA) => {
                let path = path.strip_prefix(RESOURCE_METADATA).unwrap_or_default();
                self.json(self.resource_metadata(&format!("{}{path}", self.base)))
            }
            path if path.starts_with("/.well-known/") => status(StatusCode::NOT_FOUND),
            _ if self.authorization.is_none() => self.challenge(),
            _ => self.mcp_response(),
        }
    }

    /// Returns a 401 that names the resource's metadata.
    fn challenge(&self) -> PeerResponse {
        let metadata = format!(
            "{}{RESOURCE_METADATA}{}",
            self.base,
            self.path.trim_end_matches('/')
        );
        let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        let response = Response::builder()
            .status(StatusCode::UNAUTHORIZED)
            .header(header::WWW_AUTHENTICATE, challenge);
        response.body(String::new()).expect("a response")
    }

    /// Returns the redirect of a user who consents.
    fn grant(&self) -> PeerResponse {
        let mut target = Url::parse(&self.query["redirect_uri"]).expect("a redirect URI");
        let state = &self.query["state"];
        target
            .query_pairs_mut()
            .append_pair("code", "c")
            .append_pair("state", state)
            .append_pair("iss", &self.base);
        let response = Response::builder()
            .status(StatusCode::FOUND)
            .header(header::LOCATION, target.as_str());
        response.body(String::new()).expect("a response")
    }

    /// Returns the response of an MCP server without sessions.
    fn mcp_response(&self) -> PeerResponse {
        let message = self.message();
        match message["method"].as_str() {
            _ if self.method != Method::POST => status(StatusCode::METHOD_NOT_ALLOWED),
            Some("initialize") => self.result(json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "peer", "version": "1" },
            })),
            _ if message.get("id").is_none() => status(StatusCode::ACCEPTED),
            _ => self.result(json!({ "served": self.path })),
        }
    }
}

/// Returns a response without a body.
fn status(status: StatusCode) -> PeerResponse {
    Response::builder()
        .status(status)
        .body(String::new())
        .expect("a response")
}
