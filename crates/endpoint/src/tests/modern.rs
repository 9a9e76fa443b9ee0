//! Requests of modern revisions: no sessions, and headers that must match the message.

use portcullis_mcp::{Era, Revision, Revisions};
use serde_json::json;

use super::fixture::*;
use crate::EndpointLayer;

const MODERN: (&str, &str) = (VERSION, "2026-07-28");

/// E11: a modern request needs no session. A session header is neither forwarded nor returned.
#[tokio::test]
async fn modern_requests_have_no_session() {
    let fixture = Fixture::guarded("");
    let identifier = fixture.initialize().await;
    for stray in [&*identifier, "made-up", BACKEND] {
        fixture
            .inner
            .add_response(200, &[(SESSION, "minted-by-the-backend")], "{}");
        let headers = [
            MODERN,
            ("mcp-method", "tools/list"),
            (SESSION, stray),
            ("mcp-param-region", "us-west1"),
        ];
        let response = fixture
            .post(&headers, modern("tools/list", json!({})))
            .await;
        assert_eq!(response.status, 200);
        assert_eq!(response.header(SESSION), None);
        let seen = fixture.inner.last();
        assert_eq!(seen.header(SESSION), None);
        assert_eq!(seen.header("mcp-param-region"), Some("us-west1"));
        assert_eq!(seen.era, Era::Modern(Revision::V2026_07_28));
        assert_eq!(seen.subject.as_deref(), Some("alice"));
    }
    assert_eq!(fixture.sessions.len(), 1);
}

/// E11: a token without a subject is accepted for requests without a session.
#[tokio::test]
async fn modern_requests_need_no_owner() {
    let mut fixture = Fixture::guarded("");
    fixture.use_token(&fixture.test_issuer.token().without("sub"));
    let response = fixture
        .post(
            &[MODERN, ("mcp-method", "tools/list")],
            modern("tools/list", json!({})),
        )
        .await;
    assert_eq!(response.status, 200);
}

/// F5: a message that contradicts its headers gets 400 with a specific code and its id, and is not
/// forwarded.
#[tokio::test]
async fn modern_requests_must_match_their_headers() {
    let fixture = Fixture::guarded("");
    let call = modern("tools/call", json!({"name": "add"}));
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "add");
    let mut bare = call.clone();
    bare["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    for (headers, body, code) in [
        (&[method, name][..], &call, -32020),
        (&[MODERN, name], &call, -32020),
        (&[MODERN, method], &call, -32020),
        (&[MODERN, method, ("mcp-name", "multiply")], &call, -32020),
        (&[MODERN, ("mcp-method", "tools/list"), name], &call, -32020),
        (&[(VERSION, "2025-11-25"), method, name], &call, -32020),
        (&[MODERN], &request("tools/list", json!({})), -32020),
        (&[MODERN, method, name], &bare, -32602),
    ] {
        let response = fixture.post(headers, body).await;
        assert_eq!(response.error(), (400, code), "{headers:?}");
        assert_eq!(response.json()["id"].clone(), json!(7), "{headers:?}");
    }
    for (body, code) in [("{", -32700), ("[]", -32600), ("\"x\"", -32600)] {
        let response = fixture.post(&[MODERN], body).await;
        assert_eq!(response.error(), (400, code));
        assert_eq!(response.json()["id"].clone(), json!(null));
    }
    assert!(fixture.inner.seen().is_empty());
    assert_eq!(
        fixture
            .post(&[MODERN, method, ("mcp-name", "=?base64?YWRk?=")], &call)
            .await
            .status,
        200
    );
}

/// F5: the error for an unsupported version lists the served versions.
#[tokio::test]
async fn the_error_for_an_unsupported_version_lists_the_served_ones() {
    let fixture = Fixture::guarded("");
    let mut message = modern("tools/list", json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let response = fixture
        .post(
            &[(VERSION, "2099-01-01"), ("mcp-method", "tools/list")],
            message,
        )
        .await;
    assert_eq!(response.status, 400);
    assert_eq!(
        response.json(),
        json!({
            "jsonrpc": "2.0", "id": 7,
            "error": {
                "code": -32022, "message": "Unsupported protocol version",
                "data": {"supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"], "requested": "2099-01-01"},
            },
        })
    );
    assert_eq!(fixture.decided(), (400, Some("era.version_unsupported")));
}

/// E11, F5: after the upstream has listed its revisions, `supported` contains no others.
#[tokio::test]
async fn supported_has_no_revision_that_the_upstream_lacks() {
    let json = [("content-type", "application/json")];
    const DISCOVERED: &str =
        r#"{"jsonrpc":"2.0","id":7,"result":{"supportedVersions":["2026-07-28","2027-01-01"]}}"#;
    const REFUSED: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}}"#;
    const OTHER: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no","data":{"supported":["2025-11-25"]}}}"#;
    const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#;
    const NO_SESSION: &str =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no","data":"text"}}"#;
    let all = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]);
    let legacy = json!(["2025-11-25", "2025-06-18", "2025-03-26"]);
    for (method, status, body, supported) in [
        ("server/discover", 200, DISCOVERED, json!(["2026-07-28"])),
        ("tools/list", 400, REFUSED, json!(["2025-11-25"])),
        ("tools/list", 400, OTHER, all.clone()),
        ("tools/list", 200, DISCOVERED, all.clone()),
        ("server/discover", 200, "no JSON", all.clone()),
        ("server/discover", 404, UNKNOWN, legacy.clone()),
        ("server/discover", 400, NO_SESSION, legacy),
        ("tools/list", 400, NO_SESSION, all.clone()),
        ("server/discover", 500, NO_SESSION, all),
    ] {
        let fixture = Fixture::guarded("");
        let layer = EndpointLayer::new(fixture.settings.clone()).unwrap();
        fixture.inner.add_response(status, &json, body);
        let response = fixture
            .post_through(
                &layer,
                &[MODERN, ("mcp-method", method)],
                modern(method, json!({})),
            )
            .await;
        assert_eq!(response.status, status);
        assert_eq!(&*response.body, body.as_bytes());
        let mut message = modern("tools/list", json!({}));
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
        let headers = [(VERSION, "2099-01-01"), ("mcp-method", "tools/list")];
        let response = fixture.post_through(&layer, &headers, message).await;
        assert_eq!(response.error(), (400, -32022));
        assert_eq!(
            response.json()["error"]["data"]["supported"],
            supported,
            "{method} {body}"
        );
    }
}

/// E11: a method that the revision does not define is forwarded to the upstream, even without
/// parameters.
#[tokio::test]
async fn methods_of_older_revisions_are_answered_by_the_upstream() {
    let fixture = Fixture::guarded("");
    const UNKNOWN: &str =
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        fixture
            .inner
            .add_response(404, &[("content-type", "application/json")], UNKNOWN);
        let response = fixture
            .post(&[MODERN, ("mcp-method", method)], modern(method, json!({})))
            .await;
        assert_eq!(response.status, 404, "{method}");
        assert_eq!(&*response.body, UNKNOWN.as_bytes(), "{method}");
    }
    let read = fixture
        .post(
            &[MODERN, ("mcp-method", "resources/read")],
            modern("resources/read", json!({})),
        )
        .await;
    assert_eq!(read.error(), (400, -32602));
    assert_eq!(read.json()["id"].clone(), json!(7));
}

/// F5: with modern revisions only, streams and `initialize` are rejected.
#[tokio::test]
async fn a_modern_only_endpoint_serves_post_alone() {
    let mut fixture = Fixture::guarded("");
    fixture.settings.revisions = Revisions::from_iter([Revision::V2026_07_28]);
    for method in ["GET", "DELETE", "PUT"] {
        let response = fixture.send(method, &[(SESSION, "any")], "").await;
        assert_eq!(response.status, 405);
        assert_eq!(response.header("allow"), Some("POST"));
    }
    let response = fixture.post(&[], initialize()).await;
    assert_eq!(response.error(), (400, -32022));
    assert_eq!(
        response.json()["error"]["data"],
        json!({"supported": ["2026-07-28"], "requested": "2025-11-25"})
    );

    for body in ["{", "[]", &request("ping", json!({})).to_string()] {
        let (status, code) = fixture.post(&[], body).await.error();
        assert_eq!(status, 400, "{body}");
        assert!(!(-32019..=-32000).contains(&code), "{body}");
    }
    assert_eq!(
        fixture
            .post(&[MODERN, ("mcp-method", "ping")], modern("ping", json!({})))
            .await
            .status,
        200
    );
}

/// F4: a modern request with another content type than JSON is rejected.
#[tokio::test]
async fn a_modern_request_must_be_json() {
    let fixture = Fixture::guarded("");
    let headers = [
        MODERN,
        ("mcp-method", "ping"),
        ("content-type", "text/plain"),
    ];
    let response = fixture
        .send("POST", &headers, modern("ping", json!({})).to_string())
        .await;
    assert_eq!(response.error(), (415, -32600));
}

/// L6: a 404 to a modern request is forwarded unchanged and ends no session.
#[tokio::test]
async fn an_unknown_modern_method_keeps_its_404() {
    let fixture = Fixture::guarded("");
    let identifier = fixture.initialize().await;
    let body = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#;
    fixture
        .inner
        .add_response(404, &[("content-type", "application/json")], body);
    let headers = [MODERN, ("mcp-method", "acme/x"), (SESSION, &identifier)];
    let response = fixture.post(&headers, modern("acme/x", json!({}))).await;
    assert_eq!(response.status, 404);
    assert_eq!(response.body.as_ref(), body.as_bytes());
    assert_eq!(fixture.sessions.len(), 1);
    assert_eq!(fixture.ended().len(), 0);
}

/// E11, F5: `initialize` with a modern header opens no session and is not forwarded.
#[tokio::test]
async fn a_modern_header_does_not_smuggle_an_initialize() {
    let fixture = Fixture::guarded("");
    let response = fixture
        .post(&[MODERN, ("mcp-method", "initialize")], initialize())
        .await;
    assert_eq!(response.error(), (400, -32020));
    let response = fixture
        .post(
            &[MODERN, ("mcp-method", "initialize")],
            modern("initialize", json!({})),
        )
        .await;
    assert_eq!(response.error(), (404, -32601));
    assert_eq!(response.header(SESSION), None);
    assert!(fixture.sessions.is_empty());
    assert!(fixture.inner.seen().is_empty());
}
