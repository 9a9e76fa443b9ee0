//! A server that rejects every new token, so that the client signs in again and again.

use portcullis_scenarios::{Peer, PeerRequest, PeerResponse, Portcullis, Scratch};
use serde_json::{Value, json};

/// Issues tokens without refresh tokens, and rejects them at the endpoint if `accepts` returns false.
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

/// Sends requests through `connect`, and returns the reason of each error.
async fn reasons(peer: &Peer, methods: &[&str]) -> Vec<Value> {
    let request = |(id, method)| format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }));
    let input: String = methods.iter().enumerate().map(request).collect();
    let store = Scratch::path_for("store");
    let connect = ["connect", &peer.url("/mcp"), "--auto-consent", "--store", store.as_str()];
    let finished = Portcullis::run_with_input(&connect, &input).await;
    let response = |line| serde_json::from_str::<Value>(line).unwrap();
    finished.stdout.lines().map(response).map(|response| response["error"]["data"]["reason"].clone()).collect()
}

/// I7: a server that rejects every new token causes three sign-ins, and then an error that says so.
#[tokio::test]
async fn sign_ins_without_an_accepted_request_are_limited() {
    let peer = server(|_| false).await;
    let reasons = reasons(&peer, &["initialize"; 10]).await;
    assert_eq!(reasons.len(), 10);
    assert_eq!(reasons.last().unwrap(), "client.too_many_sign_ins", "{reasons:?}");
    assert_eq!(peer.requests("/authorize").len(), 3, "{reasons:?}");
}

/// I7: accepted requests that waited for no sign-in do not count.
#[tokio::test]
async fn accepted_requests_of_others_do_not_help() {
    let peer = server(|request| request.message()["method"] == "ping").await;
    let methods =
        ["tools/list", "ping", "tools/list", "ping", "tools/list", "ping", "tools/list", "ping", "tools/list"];
    let reasons = reasons(&peer, &methods).await;
    assert!(reasons.contains(&"client.too_many_sign_ins".into()), "{reasons:?}");
    assert!(peer.requests("/authorize").len() <= 4, "{reasons:?}");
}
