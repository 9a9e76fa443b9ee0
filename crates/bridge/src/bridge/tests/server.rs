//! A scripted server, and a client on the other side of the bridge.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use portcullis_discovery::{
    BodyStream, BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, NetworkFailure, OpenResponse,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use portcullis_client::{StartUrl, TokenManager};

use crate::{Bridge, BridgeSettings, testing::RESOURCE};

/// How long a test waits for what has to come. The clock of these tests runs by itself when nothing else does.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What is sent while an answer's body is open.
pub(super) type Body = mpsc::UnboundedSender<Result<Bytes, FetchError>>;

/// An answer, or what comes in its place.
pub(super) enum Answer {
    Is(StatusCode, HeaderMap, mpsc::UnboundedReceiver<Result<Bytes, FetchError>>),
    Refused,
    Never,
}

impl Answer {
    /// An answer whose body stays open; what is sent into the other value comes on it.
    pub(super) fn open() -> (Self, Body) {
        let (body, pieces) = mpsc::unbounded_channel();
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))]);
        (Self::Is(StatusCode::OK, headers, pieces), body)
    }

    /// A stream of these pieces, which then ends.
    pub(super) fn events(pieces: &[&str]) -> Self {
        let (answer, body) = Self::open();
        for piece in pieces {
            body.send(Ok(Bytes::copy_from_slice(piece.as_bytes()))).unwrap();
        }
        answer
    }

    /// A stream of these messages, each an event.
    pub(super) fn messages(messages: &[Value]) -> Self {
        let events: Vec<_> = messages.iter().map(|message| format!("data: {message}\n\n")).collect();
        Self::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        let (sender, pieces) = mpsc::unbounded_channel();
        sender.send(Ok(body.to_string().into())).unwrap();
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        Self::Is(StatusCode::from_u16(status).unwrap(), headers, pieces)
    }

    pub(super) fn status(status: u16) -> Self {
        Self::Is(StatusCode::from_u16(status).unwrap(), HeaderMap::new(), mpsc::unbounded_channel().1)
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Is(_, headers, _) = &mut self {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        self
    }
}

/// A body that breaks off.
pub(super) fn cut() -> Result<Bytes, FetchError> {
    Err(FetchError::network(NetworkFailure::Interrupted))
}

type Script = dyn FnMut(&Asked) -> Answer + Send;

/// What the server was asked.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The method of its message, or of HTTP where it has none.
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
    asked: Mutex<Vec<Asked>>,
    pieces: Arc<AtomicUsize>,
}

impl Server {
    pub(super) fn new(script: impl FnMut(&Asked) -> Answer + Send + 'static) -> Arc<Self> {
        Arc::new(Self { script: Mutex::new(Box::new(script)), asked: Mutex::default(), pieces: Arc::default() })
    }

    /// A server of sessions, which answers the handshake and takes notifications; the rest is the script's.
    pub(super) fn legacy(mut script: impl FnMut(&Asked) -> Answer + Send + 'static) -> Arc<Self> {
        let mut sessions = 0;
        Self::new(move |asked| match (asked.method.as_str(), asked.body["method"].as_str()) {
            ("POST", Some("initialize")) => {
                sessions += 1;
                let result = asked.result(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
                Answer::json(200, &result).header("mcp-session-id", &format!("s{sessions}"))
            }
            ("POST", Some(notification)) if notification.starts_with("notifications/") => Answer::status(202),
            ("DELETE", _) => Answer::status(200),
            ("GET", _) if asked.header("last-event-id").is_none() => Answer::status(405),
            _ => script(asked),
        })
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many pieces of bodies were taken.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.load(Ordering::Relaxed)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.name().to_owned()).collect()
    }

    /// What was asked under a name.
    pub(super) fn named(&self, name: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.name() == name).collect()
    }
}

impl Fetch for Server {
    fn fetch(&self, _: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        unreachable!("the bridge opens its answers")
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        let asked = Asked {
            method: request.method.to_string(),
            url: request.url.to_string(),
            headers: request.headers,
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
        };
        self.asked.lock().unwrap().push(asked.clone());
        let answer = (self.script.lock().unwrap())(&asked);
        let taken = self.pieces.clone();
        Box::pin(async move {
            match answer {
                Answer::Is(status, headers, pieces) => {
                    Ok(OpenResponse { status, headers, body: Box::new(Incoming(pieces, taken)) })
                }
                Answer::Refused => Err(FetchError::network(NetworkFailure::Connect)),
                Answer::Never => {
                    tokio::time::sleep(request.timeout).await;
                    Err(FetchError::Timeout)
                }
            }
        })
    }
}

struct Incoming(mpsc::UnboundedReceiver<Result<Bytes, FetchError>>, Arc<AtomicUsize>);

impl BodyStream for Incoming {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async {
            let piece = self.0.recv().await;
            self.1.fetch_add(1, Ordering::Relaxed);
            piece
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
        Self::keeping(Arc::new(token_manager), server.clone(), settings)
    }

    pub(super) fn keeping(token_manager: Arc<TokenManager>, fetch: Arc<dyn Fetch>, settings: BridgeSettings) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (output, input) = tokio::io::split(near);
        let (far_input, far_output) = tokio::io::split(far);
        let (stop, stopped) = oneshot::channel();
        let bridge = Bridge::new(token_manager, fetch, settings);
        let until = Box::pin(async {
            let _ = stopped.await;
        });
        let bridge = tokio::spawn(bridge.forward(Box::new(far_input), Box::new(far_output), until));
        Self { input: Some(input), output: BufReader::new(output).lines(), stop: Some(stop), bridge }
    }

    /// A client that has made the handshake with a server of sessions.
    pub(super) async fn initialized(server: &Arc<Server>) -> Self {
        let mut client = Self::start(server);
        client.initialize().await;
        client
    }

    pub(super) async fn initialize(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
        self.request(0, "initialize", params).await;
        let answer = self.next().await;
        assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(0), true), "{answer}");
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
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.next_line()).await.expect("something comes").unwrap();
        serde_json::from_str(&line.expect("the bridge lives")).unwrap()
    }

    /// The identifiers and the reasons of the next messages, which are errors of the bridge.
    pub(super) async fn reason(&mut self) -> (i64, String) {
        let answer = self.next().await;
        let reason = answer["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (answer["id"].as_i64().unwrap(), reason.to_owned())
    }

    /// Ends the input and gives all that still comes.
    pub(super) async fn close(&mut self) -> Vec<Value> {
        self.input.take().unwrap().shutdown().await.unwrap();
        self.rest().await
    }

    /// What a signal does.
    pub(super) async fn stop(&mut self) -> Vec<Value> {
        let _ = self.stop.take().unwrap().send(());
        self.rest().await
    }

    async fn rest(&mut self) -> Vec<Value> {
        timeout(PATIENCE, &mut self.bridge).await.expect("the bridge ends").unwrap().unwrap();
        let mut rest = Vec::new();
        while let Ok(Ok(Some(line))) = timeout(Duration::from_secs(1), self.output.next_line()).await {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        rest
    }

    /// Stops reading and gives up the input; the bridge has to find out.
    pub(super) async fn vanish(self) {
        let Self { input, output, stop, bridge } = self;
        drop((input, output));
        timeout(PATIENCE, bridge).await.expect("the bridge ends").unwrap().unwrap();
        drop(stop);
    }
}

/// Lets everything happen that can happen now.
pub(super) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
