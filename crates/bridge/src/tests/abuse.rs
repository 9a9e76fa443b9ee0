//! Malicious servers and clients, and peers that disconnect: the bridge bounds memory, time and
//! requests.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Client, Server, ServerRequest, ServerResponse, settle};
use crate::BridgeSettings;

fn progress(number: usize) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": number } })
}

/// Responses with the id of another request, or with an id of another type, are errors.
#[tokio::test(start_paused = true)]
async fn responses_with_other_ids_are_rejected() {
    let foreign = [
        json!("1"),
        json!(2),
        json!(1.5),
        json!([1]),
        json!({ "id": 1 }),
        json!(true),
    ];
    let server = Server::legacy(move |request| {
        let number = request.body["params"]["number"].as_u64().unwrap();
        let foreign = &foreign[usize::try_from(number).unwrap() % foreign.len()];
        let response = json!({ "jsonrpc": "2.0", "id": foreign, "result": {} });
        if number < 6 {
            ServerResponse::json(200, &response)
        } else {
            ServerResponse::messages(&[response])
        }
    });
    let mut client = Client::initialized(&server).await;
    for number in 0..12 {
        client.request(1, "ping", json!({ "number": number })).await;
        let (id, reason) = client.reason().await;
        assert_eq!(id, 1);
        assert!(
            ["mcp.answer", "mcp.ended"].contains(&reason.as_str()),
            "{number}: {reason}"
        );
    }
    assert!(client.close().await.is_empty());
}

/// Endless lines are rejected in every position of a stream.
#[tokio::test(start_paused = true)]
async fn endless_lines_are_rejected() {
    let endless = |start: &'static str| {
        let (response, body) = ServerResponse::open();
        tokio::spawn(async move {
            let _ = body.send(Ok(start.into()));
            while body.send(Ok(Bytes::from_static(&[b'x'; 1000]))).is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        response
    };
    let server = Server::legacy(move |request| match request.name() {
        "data" => endless("data: "),
        "id" => endless("id: "),
        "field" => endless("unknown: "),
        "name" => endless(""),
        _ => endless(": a comment, "),
    });
    let mut client = Client::with(
        &server,
        BridgeSettings {
            max_message: 10_000,
            ..BridgeSettings::default()
        },
    );
    client.initialize().await;
    for (id, name) in (1..).zip(["data", "id", "field", "name", "comment"]) {
        client.request(id, name, json!({})).await;
        assert_eq!(
            client.reason().await,
            (id, "stream.event_too_large".into()),
            "{name}"
        );
    }
}

/// A stream is not resumed after an event id that is too long for a header.
#[tokio::test(start_paused = true)]
async fn an_oversized_event_id_is_not_sent_back() {
    let server = Server::legacy(|_| {
        ServerResponse::events(&[&format!("id: {}\ndata:\n\n", "x".repeat(100_000))])
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.reason().await, (1, "mcp.ended".into()));
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.header("last-event-id").is_none())
    );
}

/// Retries are limited to about one a second, even if the server's `retry` is 0.
#[tokio::test(start_paused = true)]
async fn retries_are_limited() {
    let resumed = |request: &&ServerRequest| request.header("last-event-id").is_some();
    let server = Server::new(|request| match request.name() {
        "initialize" => {
            let result = request.result(json!({ "protocolVersion": "2025-11-25" }));
            ServerResponse::json(200, &result).header("mcp-session-id", "s")
        }
        "notifications/initialized" | "notifications/cancelled" => ServerResponse::status(202),
        // The GET stream, and the stream of a request.
        _ => ServerResponse::events(&["id: 1\nretry: 0\n\n"]),
    });
    let mut client = Client::initialized(&server).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let get_stream = server.requests().iter().filter(resumed).count();
    assert!((40..80).contains(&get_stream), "{get_stream} in a minute");

    client.request(1, "slow", json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let both = server.requests().iter().filter(resumed).count() - get_stream;
    assert!((80..160).contains(&both), "{both} in a minute");

    client
        .notify("notifications/cancelled", json!({ "requestId": 1 }))
        .await;
    settle().await;
    let before = server.requests().iter().filter(resumed).count();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        server.requests().iter().filter(resumed).count() - before < 80,
        "the retries end with the request"
    );
}

/// Progress that arrives faster than the client reads is not read from the server.
#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_causes_backpressure() {
    const FLOOD: usize = 50_000;
    let (response, body) = ServerResponse::open();
    for number in 0..FLOOD {
        body.send(Ok(format!("data: {}\n\n", progress(number)).into()))
            .unwrap();
    }
    let result = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    body.send(Ok(format!("data: {result}\n\n").into())).unwrap();
    let mut response = Some(response);
    let server = Server::legacy(move |_| response.take().unwrap());
    let settings = BridgeSettings {
        max_message: 10_000,
        ..BridgeSettings::default()
    };
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    client.request(1, "slow", json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;

    // The client's pipe of 1 MiB is full, too.
    assert!(
        server.chunks() < FLOOD / 2,
        "{} chunks were read",
        server.chunks()
    );
    for number in 0..FLOOD {
        assert_eq!(client.next().await, progress(number));
    }
    assert_eq!(client.next().await["id"], 1);
}

/// Invalid lines of any length get an error and do not affect other messages.
#[tokio::test(start_paused = true)]
async fn invalid_lines_get_an_error() {
    let server = Server::legacy(|request| ServerResponse::json(200, &request.result(json!({}))));
    let mut client = Client::with(
        &server,
        BridgeSettings {
            max_message: 100_000,
            ..BridgeSettings::default()
        },
    );
    client.initialize().await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}"#,
        "[".repeat(50_000)
    );
    let two = r#"{"jsonrpc":"2.0","id":1,"method":"m"} {"jsonrpc":"2.0","id":2,"method":"m"}"#;
    for (line, code) in [
        (
            &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"x\":\"\xff\xfe\"}"[..],
            -32700,
        ),
        (b"\x00\x01\x02", -32700),
        (
            b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
            -32700,
        ),
        (deep.as_bytes(), -32700),
        (two.as_bytes(), -32700),
        (br#"{"jsonrpc":"2.0","id":{"a":1},"method":"m"}"#, -32600),
        (&[b' ', b'x'].repeat(1 << 20), -32600),
    ] {
        client.bytes(line).await;
        client.bytes(b"\n").await;
        let response = client.next().await;
        assert_eq!(response["error"]["code"], json!(code), "{}", line.len());
        assert_eq!(response["id"], Value::Null, "{}", line.len());
    }
    client.request(7, "ping", json!({})).await;
    assert_eq!(client.next().await["id"], 7);
    assert_eq!(server.named("m").len(), 0);
}

/// The bridge ends if the client closes both ends.
#[tokio::test(start_paused = true)]
async fn a_client_that_closes_both_ends() {
    let mut kept = Vec::new();
    let server = Server::legacy(move |_| {
        let (response, body) = ServerResponse::open();
        kept.push(body);
        response
    });
    for _ in 0..2 {
        let mut client = Client::initialized(&server).await;
        client.request(1, "slow", json!({})).await;
        settle().await;
        let began = Instant::now();
        client.disconnect().await;
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
    assert_eq!(server.named("DELETE").len(), 2);
}
