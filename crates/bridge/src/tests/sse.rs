//! HTTP with SSE, the transport of 2024-11-05, is used if the server has no other one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::server::{Body, Client, Server, ServerRequest, ServerResponse, settle};
use crate::{BridgeSettings, BridgeTransport};

/// The data of an event of another type, which is not forwarded.
const OTHER_EVENT: &str = r#"{"jsonrpc":"2.0","method":"notifications/other"}"#;

/// A server of 2024-11-05: each GET opens a stream, and responses are sent on the latest one.
struct SseServer {
    server: Arc<Server>,
    streams: Arc<Mutex<Vec<Body>>>,
    /// The number of streams to reject.
    down: Arc<AtomicUsize>,
}

impl SseServer {
    fn start(endpoint: &'static str) -> Self {
        let streams: Arc<Mutex<Vec<Body>>> = Arc::default();
        let down: Arc<AtomicUsize> = Arc::default();
        let opened = streams.clone();
        let is_down = down.clone();
        let server = Server::new(move |request| {
            if request.method == "GET" {
                if is_down
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                        left.checked_sub(1)
                    })
                    .is_ok()
                {
                    return ServerResponse::status(503);
                }
                let (response, body) = ServerResponse::open();
                // The bytes after the first event are read, too.
                let first = format!(
                    "event: endpoint\ndata: {endpoint}\n\nevent: ping\ndata: {OTHER_EVENT}\n\n: half an eve"
                );
                body.send(Ok(first.into())).unwrap();
                body.send(Ok("nt\n\n".into())).unwrap();
                opened.lock().push(body);
                return response;
            }
            if !request.url.ends_with("/messages?session=1") {
                return ServerResponse::status(405);
            }
            if let Some(response) = response(request) {
                let streams = opened.lock();
                streams
                    .last()
                    .unwrap()
                    .send(Ok(format!("event: message\ndata: {response}\n\n").into()))
                    .unwrap();
            }
            ServerResponse::status(202)
        });
        Self {
            server,
            streams,
            down,
        }
    }
}

fn response(request: &ServerRequest) -> Option<Value> {
    match request.name() {
        "initialize" => Some(request.result(json!({ "protocolVersion": "2024-11-05" }))),
        "resources/subscribe" => Some(request.result(json!({}))),
        "tools/list" => Some(request.result(json!({ "tools": [] }))),
        _ => None,
    }
}

/// The transport of 2024-11-05 is used after the server rejects the POST.
#[tokio::test(start_paused = true)]
async fn http_with_sse_is_used_if_needed() {
    let sse = SseServer::start("/messages?session=1");
    let mut client = Client::initialized(&sse.server).await;
    client.request(1, "tools/list", json!({})).await;
    assert_eq!(client.next().await["result"], json!({ "tools": [] }));
    assert!(client.close().await.is_empty());

    let requests: Vec<_> = sse
        .server
        .requests()
        .iter()
        .map(|request| format!("{} {}", request.name(), request.url))
        .collect();
    let start = "https://mcp.example.com/mcp";
    let messages = "https://mcp.example.com/messages?session=1";
    assert_eq!(
        requests,
        [
            format!("initialize {start}"),
            format!("GET {start}"),
            format!("initialize {messages}"),
            format!("notifications/initialized {messages}"),
            format!("tools/list {messages}"),
        ]
    );
}

/// A message URL of another origin is rejected, so that no token is sent there.
#[tokio::test(start_paused = true)]
async fn a_message_url_of_another_origin_is_rejected() {
    let sse = SseServer::start("https://evil.example/messages?session=1");
    let mut client = Client::start(&sse.server);
    client.request(0, "initialize", json!({})).await;
    assert_eq!(client.reason().await, (0, "mcp.status".into()));
    assert!(
        sse.server
            .requests()
            .iter()
            .all(|request| request.url == "https://mcp.example.com/mcp")
    );
}

/// When the stream ends, requests in progress fail. The next request opens another stream and
/// session.
#[tokio::test(start_paused = true)]
async fn an_ended_stream_is_opened_again() {
    let sse = SseServer::start("/messages?session=1");
    let mut client = Client::initialized(&sse.server).await;
    client.request(1, "slow", json!({})).await;
    settle().await;
    sse.streams.lock().clear();
    assert_eq!(client.reason().await, (1, "mcp.ended".into()));
    client.request(2, "tools/list", json!({})).await;
    assert_eq!(client.next().await["id"], 2);
    assert_eq!(sse.server.named("GET").len(), 2);
    assert_eq!(sse.server.named("notifications/initialized").len(), 2);
}

/// For a client with subscriptions, the stream is opened again when the server is available.
#[tokio::test(start_paused = true)]
async fn subscriptions_outlive_their_stream() {
    let sse = SseServer::start("/messages?session=1");
    let transport = BridgeTransport::HttpSse;
    let mut client = Client::with(
        &sse.server,
        BridgeSettings {
            transport,
            ..BridgeSettings::default()
        },
    );
    client.initialize().await;
    client
        .request(1, "resources/subscribe", json!({ "uri": "a:1" }))
        .await;
    client.next().await;
    sse.down.store(3, Ordering::Relaxed);
    sse.streams.lock().clear();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let subscribed = sse.server.named("resources/subscribe");
    assert_eq!(subscribed.len(), 2);
    assert_eq!(subscribed[1].body["params"], json!({ "uri": "a:1" }));
    assert_eq!(sse.server.named("GET").len(), 1 + 3 + 1);
    assert!(client.close().await.is_empty());
}

/// If a transport is configured, the other one is not tried.
#[tokio::test(start_paused = true)]
async fn a_transport_can_be_chosen() {
    let sse = SseServer::start("/messages?session=1");
    let with = |transport| {
        Client::with(
            &sse.server,
            BridgeSettings {
                transport,
                ..BridgeSettings::default()
            },
        )
    };
    let mut client = with(BridgeTransport::StreamableHttp);
    client.request(0, "initialize", json!({})).await;
    assert_eq!(client.reason().await, (0, "mcp.status".into()));
    assert!(sse.server.named("GET").is_empty());

    let mut client = with(BridgeTransport::HttpSse);
    client.initialize().await;
    assert_eq!(sse.server.requests()[1].method, "GET");
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    client
        .request(1, "server/discover", json!({ "_meta": meta }))
        .await;
    assert_eq!(client.reason().await, (1, "mcp.not_in_revision".into()));
}

/// For a server that supports neither transport, the error of its first response is reported.
#[tokio::test(start_paused = true)]
async fn a_server_that_supports_neither_transport() {
    for (status, tries_sse) in [
        (404, true),
        (405, true),
        (400, true),
        (500, false),
        (403, false),
    ] {
        let server = Server::new(move |_| ServerResponse::status(status));
        let mut client = Client::start(&server);
        client.request(0, "initialize", json!({})).await;
        assert_eq!(client.reason().await, (0, "mcp.status".into()));
        assert_eq!(
            server.named("GET").len(),
            usize::from(tries_sse),
            "{status}"
        );
    }
    for (status, code) in [(404, -32601), (400, -32020), (400, -32021), (400, -32022)] {
        let modern =
            json!({ "jsonrpc": "2.0", "id": 0, "error": { "code": code, "message": "m" } });
        let server = Server::new(move |_| ServerResponse::json(status, &modern));
        let mut client = Client::start(&server);
        client.request(0, "initialize", json!({})).await;
        assert_eq!(client.next().await["error"]["code"], code);
        assert!(
            server.named("GET").is_empty(),
            "a server with Streamable HTTP gets no request for an SSE stream"
        );
    }
}
