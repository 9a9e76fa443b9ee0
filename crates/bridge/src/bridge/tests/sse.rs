//! HTTP with SSE, the transport of 2024-11-05.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::server::{Answer, Asked, Body, Client, Server, settle};
use crate::{BridgeSettings, BridgeTransport};

/// A server of that time: each GET opens a stream, and answers come on the latest one.
struct Old {
    server: Arc<Server>,
    streams: Arc<Mutex<Vec<Body>>>,
    /// How many streams are refused.
    down: Arc<AtomicUsize>,
}

impl Old {
    fn start(endpoint: &'static str) -> Self {
        let streams: Arc<Mutex<Vec<Body>>> = Arc::default();
        let down: Arc<AtomicUsize> = Arc::default();
        let (opened, is_down) = (streams.clone(), down.clone());
        let server = Server::new(move |asked| {
            if asked.method == "GET" {
                if is_down.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    return Answer::status(503);
                }
                let (answer, body) = Answer::open();
                // What comes with the first event counts too, cut in its middle.
                body.send(Ok(format!("event: endpoint\ndata: {endpoint}\n\n: half an eve").into())).unwrap();
                body.send(Ok("nt\n\n".into())).unwrap();
                opened.lock().unwrap().push(body);
                return answer;
            }
            if !asked.url.ends_with("/messages?session=1") {
                return Answer::status(405);
            }
            if let Some(answer) = answer(asked) {
                let streams = opened.lock().unwrap();
                streams.last().unwrap().send(Ok(format!("event: message\ndata: {answer}\n\n").into())).unwrap();
            }
            Answer::status(202)
        });
        Self { server, streams, down }
    }
}

fn answer(asked: &Asked) -> Option<Value> {
    match asked.name() {
        "initialize" => Some(asked.result(json!({ "protocolVersion": "2024-11-05" }))),
        "resources/subscribe" => Some(asked.result(json!({}))),
        "tools/list" => Some(asked.result(json!({ "tools": [] }))),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_server_is_spoken_to_as_it_wants() {
    let old = Old::start("/messages?session=1");
    let mut client = Client::initialized(&old.server).await;
    client.request(1, "tools/list", json!({})).await;
    assert_eq!(client.next().await["result"], json!({ "tools": [] }));
    assert!(client.close().await.is_empty());
    let asked: Vec<_> = old.server.asked().iter().map(|asked| format!("{} {}", asked.name(), asked.url)).collect();
    let (start, messages) = ("https://mcp.example.com/mcp", "https://mcp.example.com/messages?session=1");
    assert_eq!(
        asked,
        [
            format!("initialize {start}"),
            format!("GET {start}"),
            format!("initialize {messages}"),
            format!("notifications/initialized {messages}"),
            format!("tools/list {messages}"),
        ]
    );
}

/// The token goes to the origin that the user named, and nowhere else.
#[tokio::test(start_paused = true)]
async fn an_address_elsewhere_is_refused() {
    let old = Old::start("https://evil.example/messages?session=1");
    let mut client = Client::start(&old.server);
    client.request(0, "initialize", json!({})).await;
    assert_eq!(client.reason().await, (0, "mcp.status".into()));
    assert!(old.server.asked().iter().all(|asked| asked.url == "https://mcp.example.com/mcp"));
}

/// A stream that ends takes with it what was under way; the next request opens another, and the session with it.
#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_opened_once_more() {
    let old = Old::start("/messages?session=1");
    let mut client = Client::initialized(&old.server).await;
    client.request(1, "slow", json!({})).await;
    settle().await;
    old.streams.lock().unwrap().clear();
    assert_eq!(client.reason().await, (1, "mcp.ended".into()));
    client.request(2, "tools/list", json!({})).await;
    assert_eq!(client.next().await["id"], 2);
    assert_eq!(old.server.named("GET").len(), 2);
    assert_eq!(old.server.named("notifications/initialized").len(), 2);
}

/// A client that has subscribed and only waits gets another stream, once the server is there again.
#[tokio::test(start_paused = true)]
async fn subscriptions_outlive_their_stream() {
    let old = Old::start("/messages?session=1");
    let transport = BridgeTransport::HttpSse;
    let mut client = Client::with(&old.server, BridgeSettings { transport, ..BridgeSettings::default() });
    client.initialize().await;
    client.request(1, "resources/subscribe", json!({ "uri": "a:1" })).await;
    client.next().await;
    old.down.store(3, Ordering::Relaxed);
    old.streams.lock().unwrap().clear();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let subscribed = old.server.named("resources/subscribe");
    assert_eq!((subscribed.len(), &subscribed[1].body["params"]), (2, &json!({ "uri": "a:1" })));
    assert_eq!(old.server.named("GET").len(), 1 + 3 + 1);
    assert!(client.close().await.is_empty());
}

/// Where the user wants one transport, the other is not tried.
#[tokio::test(start_paused = true)]
async fn a_transport_can_be_chosen() {
    let old = Old::start("/messages?session=1");
    let with = |transport| Client::with(&old.server, BridgeSettings { transport, ..BridgeSettings::default() });
    let mut client = with(BridgeTransport::StreamableHttp);
    client.request(0, "initialize", json!({})).await;
    assert_eq!(client.reason().await, (0, "mcp.status".into()));
    assert!(old.server.named("GET").is_empty());

    let mut client = with(BridgeTransport::HttpSse);
    client.initialize().await;
    assert_eq!(old.server.asked()[1].method, "GET");
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    client.request(1, "server/discover", json!({ "_meta": meta })).await;
    assert_eq!(client.reason().await, (1, "mcp.not_in_revision".into()));
}

/// A server that is neither keeps its own words.
#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_neither_is_told_as_it_answers() {
    for (status, asks) in [(404, true), (405, true), (400, true), (500, false), (403, false)] {
        let server = Server::new(move |_| Answer::status(status));
        let mut client = Client::start(&server);
        client.request(0, "initialize", json!({})).await;
        assert_eq!(client.reason().await, (0, "mcp.status".into()));
        assert_eq!(server.named("GET").len(), usize::from(asks), "{status}");
    }
    for (status, code) in [(404, -32601), (400, -32020), (400, -32021), (400, -32022)] {
        let modern = json!({ "jsonrpc": "2.0", "id": 0, "error": { "code": code, "message": "m" } });
        let server = Server::new(move |_| Answer::json(status, &modern));
        let mut client = Client::start(&server);
        client.request(0, "initialize", json!({})).await;
        assert_eq!(client.next().await["error"]["code"], code);
        assert!(server.named("GET").is_empty(), "a server of today has no such stream");
    }
}
