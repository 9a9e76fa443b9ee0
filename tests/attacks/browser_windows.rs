//! A server that rejects every new token, so that the client signs in again and again.

use std::process::Stdio;

use portcullis_scenarios::{
    Peer, PeerRequest, PeerResponse, Scratch, TIMEOUT, portcullis_command, portcullis_program,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    time::timeout,
};

/// Issues tokens without refresh tokens, and rejects them at the endpoint if `accepts` returns
/// false.
async fn server(accepts: fn(&PeerRequest) -> bool) -> Peer {
    let rejection = |request: &PeerRequest| -> PeerResponse {
        let mut response = request.json("");
        *response.status_mut() = http::StatusCode::UNAUTHORIZED;
        response
    };
    Peer::start(move |request| match request.path.as_str() {
        "/token" => Some(request.json(json!({ "access_token": "new", "token_type": "Bearer" }))),
        "/mcp" if request.authorization.is_some() && !accepts(request) => Some(rejection(request)),
        _ => None,
    })
    .await
}

/// Sends requests through `connect`, one after another, and returns the reason of each error.
async fn reasons(peer: &Peer, methods: &[&str]) -> Vec<Value> {
    let (url, store) = (peer.url("/mcp"), Scratch::path_for("store"));
    let mut command = tokio::process::Command::from(portcullis_command(portcullis_program()));
    command
        .args(["connect", &url, "--auto-consent", "--store", store.as_str()])
        .kill_on_drop(true);
    let mut bridge = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = bridge.stdin.take().unwrap();
    let mut output = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let mut reasons = Vec::new();
    for (id, method) in methods.iter().enumerate() {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} });
        input
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        let line = timeout(TIMEOUT, output.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        reasons
            .push(serde_json::from_str::<Value>(&line).unwrap()["error"]["data"]["reason"].clone());
    }
    reasons
}

/// I7: a server that rejects every new token causes three sign-ins, and then an error that says so.
#[tokio::test]
async fn sign_ins_without_an_accepted_request_are_limited() {
    let peer = server(|_| false).await;
    let reasons = reasons(&peer, &["initialize"; 10]).await;
    assert_eq!(
        reasons.last().unwrap(),
        "client.too_many_sign_ins",
        "{reasons:?}"
    );
    assert_eq!(peer.requests("/token").len(), 3, "{reasons:?}");
}

/// I7: accepted requests that waited for no sign-in do not count.
#[tokio::test]
async fn accepted_requests_of_others_do_not_help() {
    let peer = server(|request| request.message()["method"] == "ping").await;
    let methods = [
        "tools/list",
        "ping",
        "tools/list",
        "ping",
        "tools/list",
        "ping",
        "tools/list",
        "ping",
        "tools/list",
    ];
    let reasons = reasons(&peer, &methods).await;
    assert!(
        reasons.contains(&"client.too_many_sign_ins".into()),
        "{reasons:?}"
    );
    assert_eq!(peer.requests("/token").len(), 3, "{reasons:?}");
}
