//! A scripted server, and a client on the other side of the bridge.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use portcullis_discovery::{
    BodyStream, BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, NetworkFailure,
    OpenResponse,
};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf,
    },
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use portcullis_client::{StartUrl, TokenManager};

use crate::{Bridge, BridgeSettings, testing::RESOURCE};

/// The timeout of every wait. The paused clock of these tests advances while no task runs.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The sender of an open body.
pub(super) type Body = mpsc::UnboundedSender<Result<Bytes, FetchError>>;

/// A response of the server, or a failure.
pub(super) enum ServerResponse {
    Response(
        StatusCode,
        HeaderMap,
        mpsc::UnboundedReceiver<Result<Bytes, FetchError>>,
    ),
    ConnectionRefused,
    Never,
}

impl ServerResponse {
    /// Returns a response whose body stays open, and the sender of the body.
    pub(super) fn open() -> (Self, Body) {
        let (body, chunks) = mpsc::unbounded_channel();
        let headers = HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        )]);
        (Self::Response(StatusCode::OK, headers, chunks), body)
    }

    /// Returns an event stream of these chunks, which then ends.
    pub(super) fn events(chunks: &[&str]) -> Self {
        let (response, body) = Self::open();
        for chunk in chunks {
            body.send(Ok(Bytes::copy_from_slice(chunk.as_bytes())))
                .unwrap();
        }
        response
    }

    /// Returns an event stream with one event for each message.
    pub(super) fn messages(messages: &[Value]) -> Self {
        let events: Vec<_> = messages
            .iter()
            .map(|message| format!("data: {message}\n\n"))
            .collect();
        Self::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        let (sender, chunks) = mpsc::unbounded_channel();
        sender.send(Ok(body.to_string().into())).unwrap();
        let headers = HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )]);
        Self::Response(StatusCode::from_u16(status).unwrap(), headers, chunks)
    }

    pub(super) fn status(status: u16) -> Self {
        Self::Response(
            StatusCode::from_u16(status).unwrap(),
            HeaderMap::new(),
            mpsc::unbounded_channel().1,
        )
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Response(_, headers, _) = &mut self {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        self
    }
}

/// Returns the error of an interrupted body.
pub(super) fn interrupted() -> Result<Bytes, FetchError> {
    Err(FetchError::network(NetworkFailure::Interrupted))
}

type Script = dyn FnMut(&ServerRequest) -> ServerResponse + Send;

/// A request that the server received.
#[derive(Clone, Debug)]
pub(super) struct ServerRequest {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl ServerRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the method of the message, or the HTTP method if there is no message.
    pub(super) fn name(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.method)
    }

    pub(super) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(super) fn result(&self, result: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id(), "result": result })
    }
}

pub(super) struct Server {
    script: Mutex<Box<Script>>,
    requests: Mutex<Vec<ServerRequest>>,
    chunks: Arc<AtomicUsize>,
}

impl Server {
    pub(super) fn new(
        script: impl FnMut(&ServerRequest) -> ServerResponse + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(Box::new(script)),
            requests: Mutex::default(),
            chunks: Arc::default(),
        })
    }

    /// Returns a server with sessions. It responds to the handshake and to notifications, and the
    /// script to other requests.
    pub(super) fn legacy(
        mut script: impl FnMut(&ServerRequest) -> ServerResponse + Send + 'static,
    ) -> Arc<Self> {
        let mut sessions = 0;
        Self::new(
            move |request| match (request.method.as_str(), request.body["method"].as_str()) {
                ("POST", Some("initialize")) => {
                    sessions += 1;
                    let result = request
                        .result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
                    ServerResponse::json(200, &result)
                        .header("mcp-session-id", &format!("s{sessions}"))
                }
                ("POST", Some(notification)) if notification.starts_with("notifications/") => {
                    ServerResponse::status(202)
                }
                ("DELETE", _) => ServerResponse::status(200),
                ("GET", _) if request.header("last-event-id").is_none() => {
                    ServerResponse::status(405)
                }
                _ => script(request),
            },
        )
    }

    pub(super) fn requests(&self) -> Vec<ServerRequest> {
        self.requests.lock().clone()
    }

    /// Returns the number of chunks that were read from bodies.
    pub(super) fn chunks(&self) -> usize {
        self.chunks.load(Ordering::Relaxed)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.requests()
            .iter()
            .map(|request| request.name().to_owned())
            .collect()
    }

    pub(super) fn named(&self, name: &str) -> Vec<ServerRequest> {
        self.requests()
            .into_iter()
            .filter(|request| request.name() == name)
            .collect()
    }
}

impl Fetch for Server {
    fn fetch(&self, _: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        unreachable!("the bridge reads bodies as streams")
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        let recorded = ServerRequest {
            method: request.method.to_string(),
            url: request.url.to_string(),
            headers: request.headers,
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
        };
        self.requests.lock().push(recorded.clone());
        let response = (self.script.lock())(&recorded);
        let count = self.chunks.clone();
        Box::pin(async move {
            match response {
                ServerResponse::Response(status, headers, chunks) => Ok(OpenResponse {
                    status,
                    headers,
                    body: Box::new(Incoming(chunks, count)),
                    sent: Default::default(),
                }),
                ServerResponse::ConnectionRefused => {
                    Err(FetchError::network(NetworkFailure::Connect))
                }
                ServerResponse::Never => {
                    tokio::time::sleep(request.timeout).await;
                    Err(FetchError::Timeout)
                }
            }
        })
    }
}

struct Incoming(
    mpsc::UnboundedReceiver<Result<Bytes, FetchError>>,
    Arc<AtomicUsize>,
);

impl BodyStream for Incoming {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async {
            let chunk = self.0.recv().await;
            self.1.fetch_add(1, Ordering::Relaxed);
            chunk
        })
    }
}

/// A client that has started a bridge.
pub(super) struct Client {
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    stop: Option<oneshot::Sender<()>>,
    bridge: JoinHandle<std::io::Result<()>>,
}

impl Client {
    pub(super) fn start(server: &Arc<Server>) -> Self {
        Self::with(server, BridgeSettings::default())
    }

    pub(super) fn with(server: &Arc<Server>, settings: BridgeSettings) -> Self {
        let token_manager = TokenManager::unauthenticated(StartUrl::parse(RESOURCE).unwrap());
        Self::with_token_manager(Arc::new(token_manager), server.clone(), settings)
    }

    /// Starts a bridge with this token manager, and connects a client to it.
    pub(super) fn with_token_manager(
        token_manager: Arc<TokenManager>,
        fetch: Arc<dyn Fetch>,
        settings: BridgeSettings,
    ) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (output, input) = tokio::io::split(near);
        let (far_input, far_output) = tokio::io::split(far);
        let (stop, stopped) = oneshot::channel();
        let bridge = Bridge::new(token_manager, fetch, settings);
        let until = Box::pin(async {
            let _ = stopped.await;
        });
        let bridge = tokio::spawn(bridge.forward(Box::new(far_input), Box::new(far_output), until));
        Self {
            input: Some(input),
            output: BufReader::new(output).lines(),
            stop: Some(stop),
            bridge,
        }
    }

    /// Starts a client and completes the handshake.
    pub(super) async fn initialized(server: &Arc<Server>) -> Self {
        let mut client = Self::start(server);
        client.initialize().await;
        client
    }

    pub(super) async fn initialize(&mut self) {
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
        self.request(0, "initialize", params).await;
        let response = self.next().await;
        assert_eq!(response["id"], 0, "{response}");
        assert!(response["result"].is_object(), "{response}");
        self.notify("notifications/initialized", json!({})).await;
    }

    pub(super) async fn line(&mut self, line: &str) {
        self.bytes(line.as_bytes()).await;
        self.bytes(b"\n").await;
    }

    pub(super) async fn bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    pub(super) async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    pub(super) async fn request(&mut self, id: i64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Returns the next message.
    pub(super) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_line().await).unwrap()
    }

    /// Returns the text of the next message.
    pub(super) async fn next_line(&mut self) -> String {
        let line = timeout(TIMEOUT, self.output.next_line())
            .await
            .expect("a message in time")
            .unwrap();
        line.expect("the bridge is running")
    }

    /// Returns the id and the reason of the next message, which is an error of the bridge.
    pub(super) async fn reason(&mut self) -> (i64, String) {
        let response = self.next().await;
        let reason = response["error"]["data"]["reason"]
            .as_str()
            .unwrap_or_else(|| panic!("{response}"));
        (response["id"].as_i64().unwrap(), reason.to_owned())
    }

    /// Closes the input and returns the remaining messages.
    pub(super) async fn close(&mut self) -> Vec<Value> {
        self.input.take().unwrap().shutdown().await.unwrap();
        self.rest().await
    }

    /// Stops the bridge as a signal does, and returns the remaining messages.
    pub(super) async fn stop(&mut self) -> Vec<Value> {
        let _ = self.stop.take().unwrap().send(());
        self.rest().await
    }

    async fn rest(&mut self) -> Vec<Value> {
        timeout(TIMEOUT, &mut self.bridge)
            .await
            .expect("the bridge ends")
            .unwrap()
            .unwrap();
        let mut rest = Vec::new();
        while let Ok(Ok(Some(line))) =
            timeout(Duration::from_secs(1), self.output.next_line()).await
        {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        rest
    }

    /// Closes both ends without a notice, and waits until the bridge ends.
    pub(super) async fn disconnect(self) {
        let Self {
            input,
            output,
            stop,
            bridge,
        } = self;
        drop((input, output));
        timeout(TIMEOUT, bridge)
            .await
            .expect("the bridge ends")
            .unwrap()
            .unwrap();
        drop(stop);
    }
}

/// Runs the other tasks until they wait.
pub(super) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
