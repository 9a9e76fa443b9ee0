//! Resources of upstreams without sessions: `sessions = "off"`.

use portcullis_scenarios::{
    Deployment, INITIALIZE, RecordedRequest, Request, Upstream, call_message, modern_request,
};
use serde_json::json;

const OFF: &str = "required_scopes = [\"mcp:tools\"]\nsessions = \"off\"";

/// E14: no request needs an identifier, none is issued, and the session header is removed in both
/// directions.
#[tokio::test]
async fn no_identifier_is_needed_or_issued() {
    let script = |request: &RecordedRequest| {
        let headers = [
            ("content-type", "application/json"),
            ("mcp-session-id", "theirs"),
        ];
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#;
        (request.message_method().as_deref() != Some("echo"))
            .then(|| Upstream::response(200, &headers, result))
    };
    let upstream = Upstream::scripted(script).await;
    let deployment = Deployment::builder()
        .upstream(upstream)
        .resource(OFF)
        .start()
        .await;
    let token = deployment.good_token();
    let messages = [
        INITIALIZE.to_owned(),
        call_message(2, "other", &json!({})),
        call_message(3, "echo", &json!({})),
    ];
    for message in &messages {
        for session in [None, Some("made-up")] {
            let post = Request::post(Deployment::ENDPOINT, message.clone()).bearer(&token);
            let response = deployment
                .send(session.into_iter().fold(post, Request::session))
                .await;
            assert_eq!(response.status, 200, "{response:?}");
            assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
            assert_eq!(deployment.upstream.last().header("mcp-session-id"), None);
        }
    }
    let modern = modern_request(Deployment::ENDPOINT, "tools/list", &json!({}))
        .bearer(&token)
        .session("made-up");
    assert_eq!(deployment.send(modern).await.status, 200);
    assert_eq!(deployment.upstream.last().header("mcp-session-id"), None);

    let before = deployment.upstream.count();
    for method in ["GET", "DELETE"] {
        let request = Request::new(method, Deployment::ENDPOINT)
            .bearer(&token)
            .session("made-up");
        let response = deployment.send(request).await;
        assert_eq!(response.status, 405, "{response:?}");
        assert_eq!(response.header("allow"), Some("POST"), "{response:?}");
    }
    for (request, status) in [
        (
            Request::post(Deployment::ENDPOINT, call_message(4, "echo", &json!({}))),
            401,
        ),
        (Request::post(Deployment::ENDPOINT, "{").bearer(&token), 400),
    ] {
        assert_eq!(deployment.send(request).await.status, status);
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}

/// E11, E14: a revision that is not served fails immediately, too.
#[tokio::test]
async fn the_negotiated_revision_is_checked() {
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#;
    let headers = [("content-type", "application/json")];
    let upstream =
        Upstream::scripted(move |_| Some(Upstream::response(200, &headers, result))).await;
    let deployment = Deployment::builder()
        .upstream(upstream)
        .resource(OFF)
        .start()
        .await;
    let post = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&deployment.good_token());
    let response = deployment.send(post).await;
    response.assert_rpc_error(400, -32022);
    assert!(response.text().contains("2025-11-25"), "{response:?}");
}

/// E14: a token without a subject can call a resource without sessions: there is nothing to own.
#[tokio::test]
async fn a_token_without_a_subject() {
    let deployment = Deployment::builder().resource(OFF).start().await;
    let token = deployment.token().without("sub").sign();
    for message in [INITIALIZE.to_owned(), call_message(2, "echo", &json!({}))] {
        let post = Request::post(Deployment::ENDPOINT, message).bearer(&token);
        assert_eq!(deployment.send(post).await.status, 200);
    }
}
