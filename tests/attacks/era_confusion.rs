//! Messages whose revision header and body, or two parsers, could interpret differently.

use portcullis_scenarios::{
    Deployment, INITIALIZE, Request, call_message, modern_call_message, modern_request,
};
use serde_json::json;

/// F5, E11: a header alone does not make a request modern and does not bypass any rule.
#[tokio::test]
async fn a_modern_header_over_a_legacy_body() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let post = |body: &str| {
        Request::post(Deployment::ENDPOINT, body)
            .bearer(&token)
            .header("MCP-Protocol-Version", "2026-07-28")
    };
    let list = call_message(1, "tools/list", &json!({}));
    for (case, request, code) in [
        ("a request", post(&list), -32020),
        ("initialize", post(INITIALIZE), -32020),
        (
            "another method in the header",
            post(&list).header("Mcp-Method", "tools/call"),
            -32020,
        ),
        ("not JSON", post("{"), -32700),
        (
            "no _meta",
            post(&list).header("Mcp-Method", "tools/list"),
            -32602,
        ),
    ] {
        let response = deployment.send(request).await;
        response.assert_rpc_error(400, code);
        assert_eq!(response.count("mcp-session-id"), 0, "{case}: {response:?}");
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// F5: a modern request whose header and body differ is rejected with -32020.
#[tokio::test]
async fn a_modern_body_under_other_headers() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let list = modern_call_message(1, "tools/list", &json!({}));
    let tool = modern_call_message(1, "tools/call", &json!({ "name": "add", "arguments": {} }));
    let post = |body: &str| Request::post(Deployment::ENDPOINT, body).bearer(&token);
    let version = |request: Request, version: &str| request.header("MCP-Protocol-Version", version);
    let modern = |body: &str| version(post(body), "2026-07-28");
    let mut denied = Vec::new();
    for (case, request) in [
        (
            "no version header",
            post(&list).header("Mcp-Method", "tools/list"),
        ),
        (
            "a legacy version header",
            version(post(&list), "2025-11-25").header("Mcp-Method", "tools/list"),
        ),
        (
            "two version headers",
            version(modern(&list), "2026-07-28").header("Mcp-Method", "tools/list"),
        ),
        ("no method header", modern(&list)),
        (
            "another method",
            modern(&list).header("Mcp-Method", "tools/call"),
        ),
        (
            "another letter case",
            modern(&list).header("Mcp-Method", "Tools/List"),
        ),
        (
            "two method headers",
            modern(&list)
                .header("Mcp-Method", "tools/list")
                .header("Mcp-Method", "tools/call"),
        ),
        (
            "no name header",
            modern(&tool).header("Mcp-Method", "tools/call"),
        ),
        (
            "another name",
            modern(&tool)
                .header("Mcp-Method", "tools/call")
                .header("Mcp-Name", "multiply"),
        ),
        (
            "another name, encoded",
            modern(&tool)
                .header("Mcp-Method", "tools/call")
                .header("Mcp-Name", "=?base64?bXVsdGlwbHk=?="),
        ),
        (
            "an invalid encoding",
            modern(&tool)
                .header("Mcp-Method", "tools/call")
                .header("Mcp-Name", "=?base64?%%%?="),
        ),
        (
            "two names",
            modern(&tool)
                .header("Mcp-Method", "tools/call")
                .header("Mcp-Name", "add")
                .header("Mcp-Name", "add"),
        ),
    ] {
        let response = deployment.send(request).await;
        assert_eq!(response.status, 400, "{case}: {response:?}");
        response.assert_rpc_error(400, -32020);
        denied.push((response, "era.header_mismatch"));
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// F5: a version that is not served gets -32022 with both lists, and a missing member of `_meta`
/// gets -32602.
#[tokio::test]
async fn versions_and_members() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let mut message: serde_json::Value =
        serde_json::from_str(&modern_call_message(1, "tools/list", &json!({}))).unwrap();
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let request = Request::post(Deployment::ENDPOINT, message.to_string())
        .bearer(&token)
        .header("MCP-Protocol-Version", "2031-01-01")
        .header("Mcp-Method", "tools/list");
    let response = deployment.send(request).await;
    response.assert_rpc_error(400, -32022);
    assert_eq!(
        response.json()["error"]["data"]["requested"],
        "2031-01-01",
        "{response:?}"
    );
    assert!(
        response.json()["error"]["data"]["supported"]
            .as_array()
            .unwrap()
            .contains(&json!("2026-07-28")),
        "{response:?}"
    );

    let mut message: serde_json::Value =
        serde_json::from_str(&modern_call_message(1, "tools/list", &json!({}))).unwrap();
    message["params"]["_meta"]
        .as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    let request = Request::post(Deployment::ENDPOINT, message.to_string())
        .bearer(&token)
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/list");
    deployment.send(request).await.assert_rpc_error(400, -32602);
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// E11: a modern request is served without a session. An identifier in the request is ignored, and
/// none is issued, even if the upstream names one.
#[tokio::test]
async fn modern_requests_have_no_session() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    for identifier in [None, Some("stray"), Some(session.as_str())] {
        let request = modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(&token);
        let request = identifier
            .iter()
            .fold(request, |request, identifier| request.session(identifier));
        let response = deployment.send(request).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
        assert_eq!(deployment.upstream.last().header("mcp-session-id"), None);
    }
    let request = modern_request(Deployment::ENDPOINT, "initialize", &json!({})).bearer(&token);
    let before = deployment.upstream.count();
    let response = deployment.send(request).await;
    response.assert_rpc_error(404, -32601);
    assert_eq!(
        response.count("mcp-session-id"),
        0,
        "a modern initialize opens no session: {response:?}"
    );
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a modern initialize reached the upstream"
    );
}

/// F5: without legacy revisions, GET and DELETE get 405 after the bearer check, and the error for
/// `initialize` lists the served revisions.
#[tokio::test]
async fn a_modern_only_endpoint() {
    let deployment = Deployment::builder()
        .resource("revisions = [\"2026-07-28\"]")
        .start()
        .await;
    let token = deployment.good_token();
    for method in ["GET", "DELETE"] {
        assert_eq!(
            deployment
                .send(Request::new(method, Deployment::ENDPOINT))
                .await
                .assert_unauthorized(),
            None,
            "{method}"
        );
        let response = deployment
            .send(
                Request::new(method, Deployment::ENDPOINT)
                    .bearer(&token)
                    .session("x"),
            )
            .await;
        assert_eq!(response.status, 405, "{method}: {response:?}");
        assert_eq!(
            response.header("allow"),
            Some("POST"),
            "{method}: {response:?}"
        );
    }
    let response = deployment.try_token(&token).await;
    response.assert_rpc_error(400, -32022);
    assert_eq!(
        response.json()["error"]["data"]["supported"],
        json!(["2026-07-28"]),
        "{response:?}"
    );
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );

    let request = modern_request(Deployment::ENDPOINT, "tools/list", &json!({})).bearer(&token);
    assert_eq!(deployment.send(request).await.status, 200);
}

/// F6: an invalid or unserved legacy version gets 400. Without the header, the session's version
/// applies.
#[tokio::test]
async fn legacy_versions() {
    let deployment = Deployment::builder()
        .resource("revisions = [\"2025-11-25\"]")
        .start()
        .await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let post = || {
        Request::post(
            Deployment::ENDPOINT,
            call_message(1, "tools/list", &json!({})),
        )
        .bearer(&token)
        .session(&session)
    };
    for version in [
        "2025-06-18",
        "1999-01-01",
        "",
        "latest",
        "2025-11-25, 2025-06-18",
    ] {
        let response = deployment
            .send(post().header("MCP-Protocol-Version", version))
            .await;
        assert_eq!(response.status, 400, "{version:?}: {response:?}");
        let response = deployment
            .send(
                Request::new("GET", Deployment::ENDPOINT)
                    .bearer(&token)
                    .session(&session)
                    .header("MCP-Protocol-Version", version),
            )
            .await;
        assert_eq!(response.status, 400, "{version:?}: {response:?}");
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    assert_eq!(deployment.send(post()).await.status, 200);
    assert_eq!(
        deployment
            .send(post().header("MCP-Protocol-Version", "2025-11-25"))
            .await
            .status,
        200
    );
}

/// F11: `Mcp-Method` and `Mcp-Name` reach the upstream only if they were compared with the body, so
/// that an upstream cannot act on unchecked values.
#[tokio::test]
async fn unchecked_mirrored_headers() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let mismatched = |request: Request| {
        request
            .header("Mcp-Method", "tools/list")
            .header("Mcp-Name", "harmless")
    };
    let tool = call_message(1, "tools/call", &json!({ "name": "admin_wipe" }));
    let legacy = [
        Request::post(Deployment::ENDPOINT, &*tool)
            .bearer(&token)
            .session(&session),
        Request::new("GET", Deployment::ENDPOINT)
            .bearer(&token)
            .session(&session),
    ];
    for request in legacy {
        assert_eq!(deployment.send(mismatched(request)).await.status, 200);
        let forwarded = deployment.upstream.last();
        assert_eq!(forwarded.header("mcp-method"), None, "{forwarded:?}");
        assert_eq!(forwarded.header("mcp-name"), None, "{forwarded:?}");
    }
    let list = modern_request(Deployment::ENDPOINT, "tools/list", &json!({}))
        .bearer(&token)
        .header("Mcp-Name", "admin_wipe");
    assert_eq!(deployment.send(list).await.status, 200);

    let forwarded = deployment.upstream.last();
    assert_eq!(
        forwarded.header("mcp-method"),
        Some("tools/list"),
        "{forwarded:?}"
    );
    assert_eq!(forwarded.header("mcp-name"), None, "{forwarded:?}");
}
