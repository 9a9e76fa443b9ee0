//! [`Upstream`]: an MCP server that records its requests.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::watch,
    time::timeout,
};

use crate::{ChannelBody, RecordedRequest, Scratch, TIMEOUT};

/// The body of a response: complete, or sent in chunks by the test.
pub type ResponseBody = Either<Full<Bytes>, ChannelBody>;

/// Responds to a request, or leaves it to the default response.
type Script = dyn Fn(&RecordedRequest) -> Option<Response<ResponseBody>> + Send + Sync;

/// An MCP server that records its requests. By default, it opens a session for each `initialize`
/// request and responds to other JSON-RPC requests with their parameters.
#[derive(Clone)]
pub struct Upstream {
    address: Address,
    records: Arc<Records>,
}

/// Where an upstream listens.
#[derive(Clone)]
enum Address {
    Tcp(SocketAddr),
    Unix(Arc<Scratch>),
}

/// The requests so far, and their number for those who wait for it.
struct Records {
    list: Mutex<Vec<RecordedRequest>>,
    count: watch::Sender<usize>,
}

impl Upstream {
    /// Starts an upstream on a free port.
    pub async fn start() -> Self {
        Self::scripted(|_| None).await
    }

    /// Starts an upstream that responds by a script. If the script returns `None`, the default
    /// response is sent.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub async fn scripted(
        script: impl Fn(&RecordedRequest) -> Option<Response<ResponseBody>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = Address::Tcp(listener.local_addr().expect("an address"));
        let records = Records::new();
        let script = Arc::new(script);
        let upstream = Self {
            address,
            records: Arc::clone(&records),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &records, Arc::clone(&script) as _);
            }
        });
        upstream
    }

    /// As [`scripted`](Self::scripted), on a unix socket.
    ///
    /// # Panics
    /// Panics if the socket cannot be created.
    pub fn scripted_on_unix(
        script: impl Fn(&RecordedRequest) -> Option<Response<ResponseBody>> + Send + Sync + 'static,
    ) -> Self {
        let socket = Scratch::path_for("upstream.sock");
        let listener = UnixListener::bind(socket.path()).expect("a unix socket");
        let records = Records::new();
        let script = Arc::new(script);
        let upstream = Self {
            address: Address::Unix(Arc::new(socket)),
            records: Arc::clone(&records),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &records, Arc::clone(&script) as _);
            }
        });
        upstream
    }

    /// Returns the value of `upstream` in a configuration.
    pub fn setting(&self) -> String {
        match &self.address {
            Address::Tcp(address) => format!("{{ http = \"http://{address}/backend\" }}"),
            Address::Unix(socket) => format!("{{ unix = \"{}:/backend\" }}", socket.as_str()),
        }
    }

    /// Returns the scheme, host and port.
    ///
    /// # Panics
    /// Panics if it listens on a unix socket.
    pub fn origin(&self) -> String {
        match &self.address {
            Address::Tcp(address) => format!("http://{address}"),
            Address::Unix(_) => panic!("a unix socket has no origin"),
        }
    }

    /// Returns the requests so far.
    pub fn recorded(&self) -> Vec<RecordedRequest> {
        self.records.list.lock().clone()
    }

    /// Returns the number of requests so far.
    pub fn count(&self) -> usize {
        self.records.list.lock().len()
    }

    /// Returns the number of requests with this method so far.
    pub fn count_of(&self, method: &Method) -> usize {
        self.records
            .list
            .lock()
            .iter()
            .filter(|request| request.method == *method)
            .count()
    }

    /// Waits until this number of requests has arrived.
    ///
    /// # Panics
    /// Panics if they do not arrive in time.
    pub async fn wait_for_requests(&self, wanted: usize) {
        let mut count = self.records.count.subscribe();
        timeout(TIMEOUT, count.wait_for(|count| *count >= wanted))
            .await
            .expect("in time")
            .expect("it counts");
    }

    /// Returns the last request.
    ///
    /// # Panics
    /// Panics if there was none.
    pub fn last(&self) -> RecordedRequest {
        self.recorded()
            .pop()
            .expect("a request reached the upstream")
    }

    /// Returns a response with a complete body.
    ///
    /// # Panics
    /// Panics if the status or a header is malformed.
    pub fn response(
        status: u16,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response<ResponseBody> {
        Self::reply(status, headers, Either::Left(Full::new(body.into())))
    }

    /// Returns a response with a body whose chunks the test sends.
    ///
    /// # Panics
    /// Panics if the status or a header is malformed.
    pub fn streaming(
        status: u16,
        headers: &[(&str, &str)],
        body: ChannelBody,
    ) -> Response<ResponseBody> {
        Self::reply(status, headers, Either::Right(body))
    }

    fn reply(status: u16, headers: &[(&str, &str)], body: ResponseBody) -> Response<ResponseBody> {
        let response = Response::builder().status(status);
        let response = headers.iter().fold(response, |response, (name, value)| {
            response.header(*name, *value)
        });
        response.body(body).expect("a response")
    }
}

impl Records {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            list: Mutex::default(),
            count: watch::Sender::new(0),
        })
    }

    fn add(&self, request: RecordedRequest) {
        let mut list = self.list.lock();
        list.push(request);
        self.count.send_replace(list.len());
    }
}

/// Serves one connection.
fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    records: &Arc<Records>,
    script: Arc<Script>,
) {
    let records = Arc::clone(records);
    let service =
        service_fn(move |request| response(request, Arc::clone(&records), Arc::clone(&script)));
    tokio::spawn(
        http1::Builder::new()
            .max_buf_size(1 << 20)
            .serve_connection(TokioIo::new(stream), service),
    );
}

/// Records a request and responds by the script. A body that breaks off is recorded as empty.
async fn response(
    request: http::Request<Incoming>,
    records: Arc<Records>,
    script: Arc<Script>,
) -> Result<Response<ResponseBody>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let recorded = RecordedRequest {
        method: parts.method,
        target: parts.uri.to_string(),
        headers: parts.headers,
        body,
    };
    records.add(recorded.clone());
    Ok(script(&recorded).unwrap_or_else(|| default_response(&recorded)))
}

/// Returns the default response: a session for `initialize`, the parameters for other JSON-RPC
/// requests, 202 for other messages, an event stream with one comment for GET, and 200 for DELETE.
fn default_response(request: &RecordedRequest) -> Response<ResponseBody> {
    const JSON: (&str, &str) = ("content-type", "application/json");
    static SESSIONS: AtomicUsize = AtomicUsize::new(1);
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let result = |result: &Value| {
        json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
    };
    match (&request.method, message["method"].as_str()) {
        (&Method::DELETE, _) => Upstream::response(200, &[], ""),
        (&Method::GET, _) => {
            Upstream::response(200, &[("content-type", "text/event-stream")], ": open\n\n")
        }
        (_, Some("initialize")) => {
            let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
            let body = result(&json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
            Upstream::response(
                200,
                &[JSON, ("mcp-session-id", &format!("backend-{number}"))],
                body,
            )
        }
        (_, Some(_)) if message.get("id").is_some() => {
            Upstream::response(200, &[JSON], result(&message["params"]))
        }
        _ => Upstream::response(202, &[], ""),
    }
}
