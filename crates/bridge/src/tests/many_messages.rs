//! Many concurrent messages do not delay each other, and large ones share a budget.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use super::server::{Body, Client, Server, ServerResponse, settle};
use crate::BridgeSettings;

type Bodies = std::sync::Arc<parking_lot::Mutex<HashMap<i64, Body>>>;

/// Returns a server that does not complete its responses, and the senders of their bodies.
fn slow_server() -> (std::sync::Arc<Server>, Bodies) {
    let bodies = Bodies::default();
    let kept = bodies.clone();
    let server = Server::legacy(move |request| {
        let (response, body) = ServerResponse::open();
        match request.id().as_i64() {
            Some(id) if request.name() == "slow" => kept.lock().insert(id, body),
            _ => return ServerResponse::status(202),
        };
        response
    });
    (server, bodies)
}

fn complete(bodies: &Bodies, id: i64) {
    let body = bodies.lock().remove(&id).unwrap();
    let message = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    body.send(Ok(format!("data: {message}\n\n").into()))
        .unwrap();
}

/// Requests above the limit wait and are sent when others end. Meanwhile, the server can send
/// requests to the client, and waiting requests can be cancelled without reaching the server.
#[tokio::test(start_paused = true)]
async fn waiting_requests_delay_neither_responses_nor_cancellations() {
    let (server, bodies) = slow_server();
    let settings = BridgeSettings {
        max_requests: 2,
        ..BridgeSettings::default()
    };
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    for id in 1..=300 {
        client.request(id, "slow", json!({})).await;
    }
    settle().await;
    assert_eq!(server.named("slow").len(), 2);

    let server_request =
        json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {} });
    bodies.lock()[&1]
        .send(Ok(format!("data: {server_request}\n\n").into()))
        .unwrap();
    assert_eq!(client.next().await, server_request);
    client
        .send(json!({ "jsonrpc": "2.0", "id": "q", "result": {} }))
        .await;
    client.notify("notifications/progress", json!({})).await;
    client
        .notify("notifications/cancelled", json!({ "requestId": 3 }))
        .await;
    client
        .notify("notifications/cancelled", json!({ "requestId": 2 }))
        .await;
    settle().await;
    assert_eq!(
        server
            .requests()
            .iter()
            .filter(|request| request.id() == "q")
            .count(),
        1
    );
    assert_eq!(server.named("notifications/progress").len(), 1);

    let cancelled: Vec<Value> = server
        .named("notifications/cancelled")
        .iter()
        .map(|request| request.body["params"]["requestId"].clone())
        .collect();
    assert_eq!(
        cancelled,
        [2],
        "the server has not received the waiting request"
    );

    for id in (1..=300).filter(|id| ![2, 3].contains(id)) {
        settle().await;
        complete(&bodies, id);
        assert_eq!(client.next().await["id"], id);
    }
    assert!(client.close().await.is_empty());
    assert!(server.named("slow").iter().all(|request| request.id() != 3));
}

/// For an oversized request, the error response has its id, at any position in the message. For an
/// oversized response, the server gets an error.
#[tokio::test(start_paused = true)]
async fn an_oversized_message_gets_an_error_with_its_id() {
    let server = Server::legacy(|request| ServerResponse::json(200, &request.result(json!({}))));
    let mut client = Client::with(
        &server,
        BridgeSettings {
            max_message: 500,
            ..BridgeSettings::default()
        },
    );
    client.initialize().await;
    let text = "x".repeat(100_000);
    client
        .line(&format!(
            r#"{{"method":"m","params":{{"id":1,"text":"{text}"}},"jsonrpc":"2.0","id":"a"}}"#
        ))
        .await;
    let response = client.next().await;
    assert_eq!(response["id"], "a", "{response}");
    assert_eq!(response["error"]["code"], -32600, "{response}");
    assert_eq!(response["error"]["data"]["reason"], "bridge.too_large");

    client.request(2, "m", json!({ "text": text })).await;
    assert_eq!(client.reason().await, (2, "bridge.too_large".into()));

    client
        .line(&format!(
            r#"{{"jsonrpc":"2.0","id":"q","result":{{"text":"{text}"}}}}"#
        ))
        .await;
    client.request(3, "m", json!({})).await;
    assert_eq!(client.next().await["id"], 3);
    let sent: Vec<Value> = server
        .requests()
        .into_iter()
        .map(|request| request.body)
        .collect();
    let response = sent.iter().find(|body| body["id"] == "q").unwrap();
    assert_eq!(
        response["error"]["data"]["reason"], "bridge.too_large",
        "{response}"
    );
}

/// Requests share a budget, which is released by their responses.
#[tokio::test(start_paused = true)]
async fn requests_share_a_budget() {
    let (server, bodies) = slow_server();
    let settings = BridgeSettings {
        max_message: 100_000,
        message_budget: 400_000,
        ..BridgeSettings::default()
    };
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    let large = json!({ "text": "x".repeat(90_000) });
    for id in 1..=3 {
        client.request(id, "slow", large.clone()).await;
    }
    assert_eq!(client.reason().await, (3, "bridge.busy".into()));

    client.notify("notifications/large", large.clone()).await;
    settle().await;
    assert_eq!(
        server.named("notifications/large").len(),
        1,
        "notifications are always sent"
    );
    complete(&bodies, 1);
    assert_eq!(client.next().await["id"], 1);

    tokio::time::sleep(Duration::from_secs(5)).await;
    client.request(4, "slow", large).await;
    settle().await;
    assert_eq!(server.named("slow").len(), 3);
}

/// Concurrent large responses wait for the budget, and all are forwarded.
#[tokio::test(start_paused = true)]
async fn responses_share_a_budget() {
    const SIZE: usize = 300_000;
    let (server, bodies) = slow_server();
    let settings = BridgeSettings {
        max_message: 400_000,
        message_budget: 1,
        ..BridgeSettings::default()
    };
    let mut client = Client::with(&server, settings);
    client.initialize().await;
    for id in 0..40 {
        client.request(id, "slow", json!({})).await;
    }
    settle().await;
    for part in 0..4 {
        for id in 0..40 {
            let (before, after) = match part {
                0 => (
                    format!(r#"data: {{"jsonrpc":"2.0","id":{id},"result":{{"text":""#),
                    "",
                ),
                3 => (String::new(), "\"}}\n\n"),
                _ => (String::new(), ""),
            };
            let chunk = format!("{before}{}{after}", "x".repeat(SIZE / 4));
            bodies.lock()[&id].send(Ok(chunk.into())).unwrap();
        }
        settle().await;
    }
    let mut ids: Vec<i64> = Vec::new();
    for _ in 0..40 {
        let message = client.next().await;
        assert_eq!(message["result"]["text"].as_str().unwrap().len(), SIZE);
        ids.push(message["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..40).collect::<Vec<_>>());
}
