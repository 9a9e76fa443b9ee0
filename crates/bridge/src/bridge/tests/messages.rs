//! What is no message, what is too much, and servers that do not behave.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::server::{Answer, Client, Server, settle};
use crate::BridgeSettings;

#[tokio::test(start_paused = true)]
async fn what_is_no_message_is_answered_as_such() {
    let server = Server::legacy(|asked| Answer::json(200, &asked.result(json!({}))));
    let mut client = Client::with(&server, BridgeSettings { max_message: 200, ..BridgeSettings::default() });
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
        let answer = client.next().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(null)), "{line}");
    }
    client.line("").await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["id"], 1);
}

/// A message of several lines takes one.
#[tokio::test(start_paused = true)]
async fn a_message_takes_one_line() {
    let server = Server::legacy(|asked| {
        let id = asked.id();
        Answer::events(&[&format!(
            "data: {{\"jsonrpc\":\"2.0\",\ndata:  \"id\":{id},\r\ndata: \"result\":{{\"a\":\"b\\n\"}}}}\n\n"
        )])
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["result"]["a"], "b\n");
}

/// Only so many requests wait, each under its own identifier.
#[tokio::test(start_paused = true)]
async fn too_many_requests_are_refused() {
    let mut kept = Vec::new();
    let server = Server::legacy(move |_| {
        let (answer, body) = Answer::open();
        kept.push(body);
        answer
    });
    let settings = BridgeSettings { max_requests: 2, max_waiting_requests: 1, ..BridgeSettings::default() };
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    client.request(1, "slow", json!({})).await;
    client.request(1, "slow", json!({})).await;
    assert_eq!(client.reason().await, (1, "bridge.busy".into()));
    for id in [2, 3, 4] {
        client.request(id, "slow", json!({})).await;
    }
    assert_eq!(client.reason().await, (4, "bridge.busy".into()));
    settle().await;
    assert_eq!(server.named("slow").len(), 2);
}

/// A server that is down, one that is busy and one that is silent.
#[tokio::test(start_paused = true)]
async fn servers_that_do_not_answer() {
    let mut refused = 0;
    let server = Server::legacy(move |asked| match asked.name() {
        "down" => Answer::Refused,
        "starting" if refused < 2 => {
            refused += 1;
            Answer::Refused
        }
        "busy" => Answer::status(503).header("retry-after", "20"),
        "very busy" => Answer::status(429).header("retry-after", "3600"),
        "silent" => Answer::Never,
        _ => Answer::json(200, &asked.result(json!({}))),
    });
    let mut client = Client::initialized(&server).await;
    for (id, name, reason, asked, takes) in [
        (1, "down", "fetch.connect", 4, 1),
        (2, "busy", "mcp.status", 3, 40),
        (3, "very busy", "mcp.status", 1, 0),
        (4, "silent", "fetch.timeout", 1, 300),
    ] {
        let began = Instant::now();
        client.request(id, name, json!({})).await;
        assert_eq!(client.reason().await, (id, reason.to_owned()), "{name}");
        assert_eq!((server.named(name).len(), began.elapsed().as_secs()), (asked, takes), "{name}");
    }
    client.request(5, "starting", json!({})).await;
    assert_eq!(client.next().await["result"], json!({}));
}

/// What does not end is not gathered without end.
#[tokio::test(start_paused = true)]
async fn answers_without_end_are_cut_off() {
    let server = Server::legacy(|asked| {
        let long = "x".repeat(2_000);
        match asked.name() {
            "json" => Answer::json(200, &asked.result(json!({ "text": long }))),
            _ => Answer::events(&[&format!("data: {long}"), "\n\n"]),
        }
    });
    let mut client = Client::with(&server, BridgeSettings { max_message: 1_000, ..BridgeSettings::default() });
    client.initialize().await;
    client.request(1, "json", json!({})).await;
    assert_eq!(client.reason().await, (1, "mcp.too_large".into()));
    client.request(2, "stream", json!({})).await;
    assert_eq!(client.reason().await, (2, "stream.event_too_large".into()));
}

/// Responses to no pending request are dropped, and each response is passed on once.
#[tokio::test(start_paused = true)]
async fn an_answer_comes_once() {
    let server = Server::legacy(|asked| {
        let stray = json!({ "jsonrpc": "2.0", "id": 99, "result": {} });
        Answer::messages(&[stray, asked.result(json!({ "n": 1 })), asked.result(json!({ "n": 2 }))])
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["result"], json!({ "n": 1 }));
    assert!(client.close().await.is_empty());
}

/// A server may send several messages as one, as 2025-03-26 allows it.
#[tokio::test(start_paused = true)]
async fn a_servers_batch_is_taken_apart() {
    let server = Server::legacy(|asked| {
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/message" });
        Answer::json(200, &json!([notice, asked.result(json!({}))]))
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.next().await["method"], "notifications/message");
    assert_eq!(client.next().await["id"], 1);
}

/// A client that does not read holds up its own messages, and nobody else; nothing is lost.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_loses_nothing() {
    let server = Server::legacy(|asked| Answer::json(200, &asked.result(json!({ "text": "x".repeat(100_000) }))));
    let mut client = Client::with(&server, BridgeSettings { max_message: 200_000, ..BridgeSettings::default() });
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

/// Additional headers go with every request.
#[tokio::test(start_paused = true)]
async fn additional_headers_are_sent() {
    let server = Server::legacy(|asked| Answer::json(200, &asked.result(json!({}))));
    let headers = [("x-team", "blue"), ("authorization", "Basic abc")];
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    let settings = BridgeSettings { headers: headers.into_iter().collect(), ..BridgeSettings::default() };
    assert!(!format!("{settings:?}").contains("abc"));
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    client.close().await;
    for asked in server.asked() {
        assert_eq!((asked.header("x-team"), asked.header("authorization")), (Some("blue"), Some("Basic abc")));
    }
}
