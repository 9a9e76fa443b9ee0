//! The rmcp example: the challenge, a tool called in a session, and a session of another caller.

use portcullis_discovery::{FetchRequest, UrlPolicy};
use serde_json::{Value, json};

mod support;

#[allow(dead_code, reason = "its main is not called here")]
#[path = "../rmcp.rs"]
mod example;

/// B1, E2, E4: without a token, the response is a challenge. With one, a session is opened, and its
/// tool knows the caller. Another caller cannot use the session.
#[tokio::test]
async fn rmcp_behind_guard_and_endpoint() {
    let (listener, base) = support::listener().await;
    let resource = format!("{base}/mcp");
    let issuer = support::issuer(&resource).await;
    support::serve(
        listener,
        example::app(&resource, issuer.issuer().as_str()).unwrap(),
    );
    let post = |message: &Value, session: Option<&str>| {
        let url = resource.parse().unwrap();
        let mut request = FetchRequest::post_json(url, message.to_string(), UrlPolicy::Operator);
        request.headers.insert(
            "accept",
            "application/json, text/event-stream".parse().unwrap(),
        );
        if let Some(session) = session {
            request
                .headers
                .insert("mcp-session-id", session.parse().unwrap());
            request
                .headers
                .insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
        }
        request
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});

    let denied = support::send(post(&initialize, None), None).await;
    assert_eq!(denied.status, 401);
    assert!(
        denied.headers["www-authenticate"]
            .to_str()
            .unwrap()
            .contains("/.well-known/oauth-protected-resource/mcp")
    );

    let token = issuer.token().sign();
    let opened = support::send(post(&initialize, None), Some(&token)).await;
    assert_eq!(opened.status, 200, "{:?}", opened.body);
    let exposed = opened.headers["access-control-expose-headers"]
        .to_str()
        .unwrap();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");

    let session = opened.headers["mcp-session-id"].to_str().unwrap();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(
        support::send(post(&initialized, Some(session)), Some(&token))
            .await
            .status,
        202
    );
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "whoami", "arguments": {}}});
    let called = support::send(post(&call, Some(session)), Some(&token)).await;
    assert_eq!(called.status, 200);
    assert!(
        String::from_utf8_lossy(&called.body).contains(r#""text":"alice""#),
        "{:?}",
        called.body
    );

    let mallory = issuer.token().subject("mallory").sign();
    let foreign = support::send(post(&call, Some(session)), Some(&mallory)).await;
    assert_eq!(foreign.status, 400);
}

/// The example stays short: its `app` has at most 15 lines.
#[test]
fn the_example_is_short() {
    support::assert_short(include_str!("../rmcp.rs"));
}
