use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A request that reached the upstream.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub target: String,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

type Script = dyn Fn(&Recorded) -> Option<Response<Full<Bytes>>> + Send + Sync;

/// A small MCP server that records what reaches it. It opens a session for each initialize request, and knows the method
/// `echo`, which returns its parameters.
#[derive(Clone)]
pub struct Upstream {
    address: SocketAddr,
    recorded: Arc<Mutex<Vec<Recorded>>>,
}

impl Upstream {
    /// Starts it on a free port.
    pub async fn start() -> Self {
        Self::scripted(|_| None).await
    }

    /// Starts one that answers by the script, and as usual where the script has no answer.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn scripted(script: impl Fn(&Recorded) -> Option<Response<Full<Bytes>>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let (records, script): (_, Arc<Script>) = (Arc::clone(&recorded), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (records, script) = (Arc::clone(&records), Arc::clone(&script));
                let service = service_fn(move |request| answer(request, Arc::clone(&records), Arc::clone(&script)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, recorded }
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/backend", self.address)
    }

    /// What reached it so far.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.recorded.lock().unwrap().clone()
    }

    /// The last request that reached it.
    ///
    /// # Panics
    /// When none did.
    pub fn last(&self) -> Recorded {
        self.recorded().pop().expect("a request reached the upstream")
    }
}

async fn answer(
    request: http::Request<Incoming>,
    records: Arc<Mutex<Vec<Recorded>>>,
    script: Arc<Script>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let recorded =
        Recorded { method: parts.method, target: parts.uri.to_string(), headers: parts.headers, body };
    records.lock().unwrap().push(recorded.clone());
    Ok(script(&recorded).unwrap_or_else(|| usual(&recorded)))
}

fn usual(request: &Recorded) -> Response<Full<Bytes>> {
    static SESSIONS: AtomicUsize = AtomicUsize::new(1);
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let mut response = match (&request.method, message["method"].as_str()) {
        (&Method::DELETE, _) => return status(StatusCode::OK),
        (&Method::GET, _) => event_stream(": open\n\n"),
        (_, Some(_)) if message.get("id").is_none() => return status(StatusCode::ACCEPTED),
        (_, Some("initialize")) => result(&message, &json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
        (_, Some(_)) => result(&message, &message["params"]),
        _ => return status(StatusCode::ACCEPTED),
    };
    if message["method"] == "initialize" {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let identifier = format!("backend-{number}").parse().expect("a header value");
        response.headers_mut().insert("mcp-session-id", identifier);
    }
    response
}

fn result(message: &Value, result: &Value) -> Response<Full<Bytes>> {
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    let mut response = Response::new(Full::from(body));
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn event_stream(text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/event-stream"));
    response
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
