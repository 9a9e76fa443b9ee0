//! Other spellings of a protected resource's URI that a server could accept.

use portcullis_scenarios::{Deployment, Request, call_message, modern_call_message};
use serde_json::{Value, json};

const RULES: &str = r#"
required_scopes = ["mcp:tools"]

[[resource.rule]]
method = "resources/*"
name = "file:///secret/*"
scopes = ["mcp:admin"]

[[resource.rule]]
method = "subscriptions/listen"
name = "file:///secret/*"
scopes = ["mcp:admin"]
"#;

fn read(uri: &str) -> String {
    call_message(7, "resources/read", &json!({ "uri": uri }))
}

/// F12: a rule for a URI applies to each spelling that servers treat as the same resource.
#[tokio::test]
async fn of_a_protected_resource() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let post = |body: String| Request::post(Deployment::ENDPOINT, body).bearer(&token).session(&session);
    for allowed in ["file:///public/x", "file:///secrets", "note:a b", "https://host/?file:///secret", "%"] {
        assert_eq!(deployment.send(post(read(allowed))).await.status, 200, "{allowed}");
    }
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for alias in [
        "file:///secret/x",
        "FILE:///Secret/x",
        "file://localhost/secret/x",
        "file:/secret/x",
        "file:secret/x",
        "file:///public/../secret/x",
        "file:///public/%2e%2e/secret/x",
        "file:///public/%252E%252E/secret/x",
        "file:///public/..%2fsecret%2Fx",
        "file:///public/..%5Csecret/x",
        "file:///%73ecret/x",
        "file:///sec%09ret/x",
        "%20file:///secret/x",
        "file:////secret/x",
        "file:///public//..//../secret/x",
        "file://host/secret/x",
    ] {
        let response = deployment.send(post(read(alias))).await;
        assert_eq!(response.status, 403, "{alias}: {response:?}");
        assert_eq!(response.challenge("error"), Some("insufficient_scope"), "{alias}: {response:?}");
        denied.push((response, "scope.insufficient"));
    }
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");
    deployment.portcullis.assert_all_denied(&denied).await;

    let admin = deployment.test_issuer.token().scope("mcp:tools mcp:admin").sign();
    let session = deployment.open_session(&admin).await;
    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, read("file:///a/../secret/x")).bearer(&admin).session(&session))
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(deployment.upstream.last().body, read("file:///a/../secret/x"), "the URI is forwarded unchanged");
}

/// F12: a URI that URL parsers modify is rejected with the request's id, in every member.
#[tokio::test]
async fn with_characters_that_parsers_remove() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for uri in [
        " file:///secret/x",
        "file:///secret/x ",
        "file:///sec\tret/x",
        "\nfile:///x",
        "file:///a\\..\\secret\\x",
        "\u{a0}note:x",
    ] {
        let response =
            deployment.send(Request::post(Deployment::ENDPOINT, read(uri)).bearer(&token).session(&session)).await;
        response.assert_rpc_error(400, -32602);
        assert_eq!(response.json()["id"], 7, "{uri:?}");
        denied.push((response, "message.uri_characters"));
        let params = json!({ "notifications": { "resourceSubscriptions": ["note:a", uri] } });
        let request = Request::post(Deployment::ENDPOINT, modern_call_message(8, "subscriptions/listen", &params))
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "subscriptions/listen");
        let response = deployment.send(request.bearer(&token)).await;
        response.assert_rpc_error(400, -32602);
        assert_eq!(response.json()["id"], 8, "{uri:?}");
        denied.push((response, "message.uri_characters"));
    }
    for uri in ["note://public/../secret", "note://public/%2e%2e/secret", "../secret/x"] {
        let request = Request::post(Deployment::ENDPOINT, read(uri)).bearer(&token).session(&session);
        let response = deployment.send(request).await;
        response.assert_rpc_error(400, -32602);
        denied.push((response, "message.uri_dot_segments"));
    }
    let nested = read(&format!("file:///%{}2e", "25".repeat(50)));
    let response = deployment.send(Request::post(Deployment::ENDPOINT, nested).bearer(&token).session(&session)).await;
    response.assert_rpc_error(400, -32602);

    denied.push((response, "message.uri_spellings"));
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");
    deployment.portcullis.assert_all_denied(&denied).await;

    // Tool names can have any form, and without rules for names nothing is rejected.
    let tool = call_message(1, "tools/call", &json!({ "name": " a\\\t", "arguments": {} }));
    assert_eq!(
        deployment.send(Request::post(Deployment::ENDPOINT, tool).bearer(&token).session(&session)).await.status,
        200
    );

    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, read(" file:///a\\b")).bearer(&token).session(&session))
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(response.json()["id"], Value::from(7));
}
