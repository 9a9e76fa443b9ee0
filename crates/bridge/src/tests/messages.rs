//! Invalid and oversized messages, and servers that do not respond.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use serde_json::json;
use tokio::time::Instant;

use super::server::{Client, Server, ServerResponse, settle};
use crate::BridgeSettings;

/// Invalid input gets an error response without an id.
#[tokio::test(start_paused = true)]
async fn invalid_messages_get_an_error() {
    let server = Server::legacy(|request| ServerResponse::json(200, &request.result(json!({}))));
    let mut client = Client::with(
        &server,
        BridgeSettings {
            max_message: 200,
            ..BridgeSettings::default()
        },
    );
    client.initialize().await;
    for (line, code) in [
        ("hello", -32700),
        ("{\"jsonrpc\":\"2.0\"", -32700),
        ("17", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1}]", -32600),
        (&"x".repeat(201), -32600),
        (&"x".repeat(100_000), -32600),
    ] {
        client.line(line).await;
        let response = client.next().await;
        assert_eq!(response["error"]["code"], json!(code), "{line}");
        assert_eq!(response["id"], json!(null), "{line}");
    }
    client.line("").await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["id"], 1);
}

/// A message that the server sends in several lines is forwarded in one.
#[tokio::test(start_paused = true)]
async fn a_message_takes_one_line() {
    let server = Server::legacy(|request| {
        let id = request.id();
        ServerResponse::events(&[&format!(
            "data: {{\"jsonrpc\":\"2.0\",\ndata:  \"id\":{id},\r\ndata: \"result\":{{\"a\":\"b\\n\"}}}}\n\n"
        )])
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["result"]["a"], "b\n");
}

/// Requests above the limits, and with an id in use, are rejected.
#[tokio::test(start_paused = true)]
async fn too_many_requests_are_rejected() {
    let mut kept = Vec::new();
    let server = Server::legacy(move |_| {
        let (response, body) = ServerResponse::open();
        kept.push(body);
        response
    });
    let settings = BridgeSettings {
        max_requests: 2,
        max_waiting_requests: 1,
        ..BridgeSettings::default()
    };
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    for id in [1, 1, 2, 3, 4] {
        client.request(id, "slow", json!({})).await;
    }
    for (id, text) in [
        (1, "a request with this identifier is still in progress"),
        (4, "too many requests are waiting"),
    ] {
        let rejection = client.next().await;
        assert_eq!(rejection["id"], id);
        assert_eq!(rejection["error"]["message"], text);
        assert_eq!(rejection["error"]["data"]["reason"], "bridge.busy");
    }
    settle().await;
    assert_eq!(server.named("slow").len(), 2);
}

/// Errors of servers that are unreachable, busy or silent.
#[tokio::test(start_paused = true)]
async fn servers_that_do_not_respond() {
    let mut rejected = 0;
    let server = Server::legacy(move |request| match request.name() {
        "down" => ServerResponse::ConnectionRefused,
        "starting" if rejected < 2 => {
            rejected += 1;
            ServerResponse::ConnectionRefused
        }
        "busy" => ServerResponse::status(503).header("retry-after", "20"),
        "very busy" => ServerResponse::status(429).header("retry-after", "3600"),
        "silent" => ServerResponse::Never,
        _ => ServerResponse::json(200, &request.result(json!({}))),
    });
    struct Case {
        name: &'static str,
        reason: &'static str,
        attempts: usize,
        seconds: u64,
    }
    let mut client = Client::initialized(&server).await;
    for (
        id,
        Case {
            name,
            reason,
            attempts,
            seconds,
        },
    ) in (1..).zip([
        Case {
            name: "down",
            reason: "fetch.connect",
            attempts: 4,
            seconds: 1,
        },
        Case {
            name: "busy",
            reason: "mcp.status",
            attempts: 3,
            seconds: 40,
        },
        Case {
            name: "very busy",
            reason: "mcp.status",
            attempts: 1,
            seconds: 0,
        },
        Case {
            name: "silent",
            reason: "fetch.timeout",
            attempts: 1,
            seconds: 300,
        },
    ]) {
        let began = Instant::now();
        client.request(id, name, json!({})).await;
        assert_eq!(client.reason().await, (id, reason.to_owned()), "{name}");
        assert_eq!(server.named(name).len(), attempts, "{name}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{name}");
    }
    client.request(5, "starting", json!({})).await;
    assert_eq!(client.next().await["result"], json!({}));
}

/// Responses above the size limit are errors.
#[tokio::test(start_paused = true)]
async fn oversized_responses_are_rejected() {
    let server = Server::legacy(|request| {
        let long = "x".repeat(2_000);
        match request.name() {
            "json" => ServerResponse::json(200, &request.result(json!({ "text": long }))),
            _ => ServerResponse::events(&[&format!("data: {long}"), "\n\n"]),
        }
    });
    let mut client = Client::with(
        &server,
        BridgeSettings {
            max_message: 1_000,
            ..BridgeSettings::default()
        },
    );
    client.initialize().await;
    client.request(1, "json", json!({})).await;
    assert_eq!(client.reason().await, (1, "mcp.too_large".into()));
    client.request(2, "stream", json!({})).await;
    assert_eq!(client.reason().await, (2, "stream.event_too_large".into()));
}

/// Responses without a pending request are dropped, and each response is forwarded once.
#[tokio::test(start_paused = true)]
async fn a_response_is_forwarded_once() {
    let server = Server::legacy(|request| {
        let stray = json!({ "jsonrpc": "2.0", "id": 99, "result": {} });
        ServerResponse::messages(&[
            stray,
            request.result(json!({ "n": 1 })),
            request.result(json!({ "n": 2 })),
        ])
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["result"], json!({ "n": 1 }));
    assert!(client.close().await.is_empty());
}

/// A batch of the server, which 2025-03-26 allows, is split into messages.
#[tokio::test(start_paused = true)]
async fn a_batch_of_the_server_is_split() {
    let server = Server::legacy(|request| {
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/message" });
        ServerResponse::json(200, &json!([notice, request.result(json!({}))]))
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["method"], "notifications/message");
    assert_eq!(client.next().await["id"], 1);
}

/// A client that does not read delays its messages, but loses none.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_loses_nothing() {
    let server = Server::legacy(|request| {
        ServerResponse::json(200, &request.result(json!({ "text": "x".repeat(100_000) })))
    });
    let mut client = Client::with(
        &server,
        BridgeSettings {
            max_message: 200_000,
            ..BridgeSettings::default()
        },
    );
    client.initialize().await;
    for id in 1..=100 {
        client.request(id, "large", json!({})).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut ids = Vec::new();
    for _ in 1..=100 {
        ids.push(client.next().await["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=100).collect::<Vec<_>>());
    settle().await;
}

/// Additional headers are sent with every request.
#[tokio::test(start_paused = true)]
async fn additional_headers_are_sent() {
    let server = Server::legacy(|request| ServerResponse::json(200, &request.result(json!({}))));
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-team", "blue"),
        ("x-team", "green"),
        ("authorization", "Basic abc"),
    ] {
        headers.append(name, HeaderValue::from_static(value));
    }
    let settings = BridgeSettings {
        headers,
        ..BridgeSettings::default()
    };
    assert!(!format!("{settings:?}").contains("abc"));
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    client.close().await;
    for request in server.requests() {
        assert_eq!(
            request.headers.get_all("x-team").iter().collect::<Vec<_>>(),
            ["blue", "green"]
        );
        assert_eq!(request.header("authorization"), Some("Basic abc"));
    }
}
