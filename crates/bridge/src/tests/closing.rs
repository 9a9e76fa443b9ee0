//! Revisions with sessions: what happens to requests and the session when the client leaves.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::server::{Client, Server, ServerResponse, settle};

/// After the end of the input, requests in progress have a short time to complete. The others get
/// an error.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_leaves_time_for_responses() {
    let mut kept = Vec::new();
    let server = Server::legacy(move |request| {
        let (response, body) = ServerResponse::open();
        if request.name() == "quick" {
            let result = request.result(json!({}));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(500)).await;
                body.send(Ok(format!("data: {result}\n\n").into())).unwrap();
            });
        } else {
            kept.push(body);
        }
        response
    });
    let mut client = Client::initialized(&server).await;
    client.request(1, "quick", json!({})).await;
    client.request(2, "endless", json!({})).await;
    let rest = client.close().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["id"], 1);
    assert_eq!(rest[0]["result"], json!({}));
    assert_eq!(rest[1]["id"], 2);
    assert_eq!(rest[1]["error"]["data"]["reason"], "bridge.ended");
    assert_eq!(server.named("DELETE").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_session_immediately() {
    let server = Server::legacy(|_| ServerResponse::Never);
    let mut client = Client::initialized(&server).await;
    client.request(1, "slow", json!({})).await;
    settle().await;
    let began = Instant::now();
    let rest = client.stop().await;
    assert_eq!(rest[0]["error"]["data"]["reason"], "bridge.ended");
    assert!(
        began.elapsed() < Duration::from_millis(2_500),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(server.named("DELETE").len(), 1);
}

/// The session is deleted if the client disconnects.
#[tokio::test(start_paused = true)]
async fn a_disconnected_client_leaves_no_session() {
    let server = Server::legacy(|request| ServerResponse::json(200, &request.result(json!({}))));
    let client = Client::initialized(&server).await;
    settle().await;
    client.disconnect().await;
    assert_eq!(server.named("DELETE").len(), 1);
}

/// The DELETE of a session has a short timeout.
#[tokio::test(start_paused = true)]
async fn the_delete_has_a_timeout() {
    let server = Server::new(|request| match request.name() {
        "initialize" => {
            ServerResponse::json(200, &request.result(json!({}))).header("mcp-session-id", "s")
        }
        "DELETE" => ServerResponse::Never,
        _ => ServerResponse::status(202),
    });
    let mut client = Client::initialized(&server).await;
    settle().await;
    let began = Instant::now();
    client.close().await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(server.named("DELETE").len(), 1);
}
