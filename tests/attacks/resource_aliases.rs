//! Other spellings of a protected resource's URI that a server could accept.

use portcullis_scenarios::{Deployment, Request, call, modern_call};
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
    call(7, "resources/read", &json!({ "uri": uri }))
}

/// F12: a rule for a URI applies to each spelling that servers treat as the same resource.
#[tokio::test]
async fn of_a_protected_resource() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let post = |body: String| Request::post(Deployment::ENDPOINT, body).bearer(&token).session(&session);
    for open in ["file:///public/x", "file:///secrets", "note:a b", "https://host/?file:///secret", "%"] {
        assert_eq!(deployment.send(post(read(open))).await.status, 200, "{open}");
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
        let answer = deployment.send(post(read(alias))).await;
        assert_eq!(answer.status, 403, "{alias}: {answer:?}");
        assert_eq!(answer.challenge("error"), Some("insufficient_scope"), "{alias}: {answer:?}");
        denied.push((answer, "scope.insufficient"));
    }
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");
    deployment.portcullis.assert_all_denied(&denied).await;
    let admin = deployment.test_issuer.token().scope("mcp:tools mcp:admin").sign();
    let session = deployment.open_session(&admin).await;
    let answer = deployment
        .send(Request::post(Deployment::ENDPOINT, read("file:///a/../secret/x")).bearer(&admin).session(&session))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(deployment.upstream.last().body, read("file:///a/../secret/x"), "the URI is passed on as it was sent");
}

/// F12: a URI that URL parsers modify is rejected with the request's id, in every member.
#[tokio::test]
async fn that_parsers_clean_up() {
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
        let answer =
            deployment.send(Request::post(Deployment::ENDPOINT, read(uri)).bearer(&token).session(&session)).await;
        answer.assert_rpc_error(400, -32602);
        assert_eq!(answer.json()["id"], 7, "{uri:?}");
        denied.push((answer, "message.uri_characters"));
        let params = json!({ "notifications": { "resourceSubscriptions": ["note:a", uri] } });
        let request = Request::post(Deployment::ENDPOINT, modern_call(8, "subscriptions/listen", &params))
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "subscriptions/listen");
        let answer = deployment.send(request.bearer(&token)).await;
        answer.assert_rpc_error(400, -32602);
        assert_eq!(answer.json()["id"], 8, "{uri:?}");
        denied.push((answer, "message.uri_characters"));
    }
    let nested = read(&format!("file:///%{}2e", "25".repeat(50)));
    let answer = deployment.send(Request::post(Deployment::ENDPOINT, nested).bearer(&token).session(&session)).await;
    answer.assert_rpc_error(400, -32602);
    denied.push((answer, "message.uri_spellings"));
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");
    deployment.portcullis.assert_all_denied(&denied).await;
    // Tool names can have any form, and without rules for names nothing is rejected.
    let tool = call(1, "tools/call", &json!({ "name": " a\\\t", "arguments": {} }));
    assert_eq!(
        deployment.send(Request::post(Deployment::ENDPOINT, tool).bearer(&token).session(&session)).await.status,
        200
    );
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let answer = deployment
        .send(Request::post(Deployment::ENDPOINT, read(" file:///a\\b")).bearer(&token).session(&session))
        .await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &Value::from(7)));
}
