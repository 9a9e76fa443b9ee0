//! Servers that mean ill, clients that do, and both ends that vanish: what they can make the bridge do has an end.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Answer, Asked, Client, Server, settle};
use crate::BridgeSettings;

fn progress(number: usize) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": number } })
}

/// An answer that is not the request's own: of another type, for another request, or without any.
#[tokio::test(start_paused = true)]
async fn answers_under_foreign_identifiers_are_nobodys() {
    let foreign = [json!("1"), json!(2), json!(1.5), json!([1]), json!({ "id": 1 }), json!(true)];
    let server = Server::legacy(move |asked| {
        let number = asked.body["params"]["number"].as_u64().unwrap();
        let foreign = &foreign[usize::try_from(number).unwrap() % foreign.len()];
        let answer = json!({ "jsonrpc": "2.0", "id": foreign, "result": {} });
        if number < 6 { Answer::json(200, &answer) } else { Answer::messages(&[answer]) }
    });
    let mut client = Client::initialized(&server).await;
    for number in 0..12 {
        client.request(1, "ping", json!({ "number": number })).await;
        let (id, reason) = client.reason().await;
        assert_eq!(id, 1);
        assert!(["mcp.answer", "mcp.ended"].contains(&reason.as_str()), "{number}: {reason}");
    }
    assert!(client.close().await.is_empty());
}

/// Lines without end, in every place where a stream may have them.
#[tokio::test(start_paused = true)]
async fn lines_without_end_are_cut_off() {
    let endless = |start: &'static str| {
        let (answer, body) = Answer::open();
        tokio::spawn(async move {
            let _ = body.send(Ok(start.into()));
            while body.send(Ok(Bytes::from_static(&[b'x'; 1000]))).is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        answer
    };
    let server = Server::legacy(move |asked| match asked.name() {
        "data" => endless("data: "),
        "id" => endless("id: "),
        "field" => endless("unknown: "),
        "name" => endless(""),
        _ => endless(": a comment, "),
    });
    let mut client = Client::with(&server, BridgeSettings { max_message: 10_000, ..BridgeSettings::default() });
    client.initialize().await;
    for (id, name) in (1..).zip(["data", "id", "field", "name", "comment"]) {
        client.request(id, name, json!({})).await;
        assert_eq!(client.reason().await, (id, "stream.event_too_large".into()), "{name}");
    }
}

/// An event's identifier that fits into no header is nothing to resume behind.
#[tokio::test(start_paused = true)]
async fn an_endless_event_identifier_is_not_sent_back() {
    let server = Server::legacy(|_| Answer::events(&[&format!("id: {}\ndata:\n\n", "x".repeat(100_000))]));
    let mut client = Client::initialized(&server).await;
    client.request(1, "ping", json!({})).await;
    assert_eq!(client.reason().await, (1, "mcp.ended".into()));
    assert!(server.asked().iter().all(|asked| asked.header("last-event-id").is_none()));
}

/// A server that wants its stream asked for again at once, again and again, does not get that.
#[tokio::test(start_paused = true)]
async fn a_flood_of_retries_slows_down() {
    let resumed = |asked: &&Asked| asked.header("last-event-id").is_some();
    let server = Server::new(|asked| match asked.name() {
        "initialize" => {
            let result = asked.result(json!({ "protocolVersion": "2025-11-25" }));
            Answer::json(200, &result).header("mcp-session-id", "s")
        }
        "notifications/initialized" | "notifications/cancelled" => Answer::status(202),
        // The stream of the server's own accord, and that of a request.
        _ => Answer::events(&["id: 1\nretry: 0\n\n"]),
    });
    let mut client = Client::initialized(&server).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let own_accord = server.asked().iter().filter(resumed).count();
    assert!((40..80).contains(&own_accord), "{own_accord} in a minute");
    client.request(1, "slow", json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let both = server.asked().iter().filter(resumed).count() - own_accord;
    assert!((80..160).contains(&both), "{both} in a minute");
    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    settle().await;
    let before = server.asked().iter().filter(resumed).count();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(server.asked().iter().filter(resumed).count() - before < 80, "it ends with the request");
}

/// Progress that comes faster than the client reads waits at the server.
#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_is_held_back() {
    const FLOOD: usize = 50_000;
    let (answer, body) = Answer::open();
    for number in 0..FLOOD {
        body.send(Ok(format!("data: {}\n\n", progress(number)).into())).unwrap();
    }
    let result = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    body.send(Ok(format!("data: {result}\n\n").into())).unwrap();
    let mut answer = Some(answer);
    let server = Server::legacy(move |_| answer.take().unwrap());
    let settings = BridgeSettings { max_message: 10_000, ..BridgeSettings::default() };
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    client.request(1, "slow", json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    // What lies in the client's pipe, of 1 MiB, does not count.
    assert!(server.pieces() < FLOOD / 2, "{} were taken", server.pieces());
    for number in 0..FLOOD {
        assert_eq!(client.next().await, progress(number));
    }
    assert_eq!(client.next().await["id"], 1);
}

/// A line of any length from the client costs itself alone, and so do bytes that are no text.
#[tokio::test(start_paused = true)]
async fn whatever_the_client_writes_is_answered_or_refused() {
    let server = Server::legacy(|asked| Answer::json(200, &asked.result(json!({}))));
    let mut client = Client::with(&server, BridgeSettings { max_message: 100_000, ..BridgeSettings::default() });
    client.initialize().await;
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}"#, "[".repeat(50_000));
    let two = r#"{"jsonrpc":"2.0","id":1,"method":"m"} {"jsonrpc":"2.0","id":2,"method":"m"}"#;
    for (line, code) in [
        (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"x\":\"\xff\xfe\"}"[..], -32700),
        (b"\x00\x01\x02", -32700),
        (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", -32700),
        (deep.as_bytes(), -32700),
        (two.as_bytes(), -32700),
        (br#"{"jsonrpc":"2.0","id":{"a":1},"method":"m"}"#, -32600),
        (&[b' ', b'x'].repeat(1 << 20), -32600),
    ] {
        client.bytes(line).await;
        client.bytes(b"\n").await;
        let answer = client.next().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{}", line.len());
    }
    client.request(7, "ping", json!({})).await;
    assert_eq!(client.next().await["id"], 7);
    assert_eq!(server.named("m").len(), 0);
}

/// A client that has closed its input and does not read its output either does not keep the bridge.
#[tokio::test(start_paused = true)]
async fn nobody_at_either_end() {
    let mut kept = Vec::new();
    let server = Server::legacy(move |_| {
        let (answer, body) = Answer::open();
        kept.push(body);
        answer
    });
    for _ in 0..2 {
        let mut client = Client::initialized(&server).await;
        client.request(1, "slow", json!({})).await;
        settle().await;
        let began = Instant::now();
        client.vanish().await;
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    assert_eq!(server.named("DELETE").len(), 2);
}
