//! Inner services without sessions.

use serde_json::json;

use super::fixture::*;
use crate::SessionMode;

fn stateless() -> Fixture {
    let mut fixture = Fixture::guarded("mcp");
    fixture.settings.session_mode = SessionMode::Off;
    fixture
}

/// E14: no message needs a session, none is opened, and the session header is removed in both
/// directions.
#[tokio::test]
async fn no_session_is_needed_or_opened() {
    const STRAY: (&str, &str) = (SESSION, "made-up");
    let fixture = stateless();
    let legacy_headers: [&[(&str, &str)]; 3] = [&[], &[STRAY], &[STRAY, (VERSION, "2025-11-25")]];
    let modern_headers: [&[(&str, &str)]; 1] =
        [&[STRAY, (VERSION, "2026-07-28"), ("mcp-method", "tools/list")]];
    for (message, variants) in [
        (initialize(), &legacy_headers[..]),
        (request("tools/list", json!({})), &legacy_headers),
        (modern("tools/list", json!({})), &modern_headers),
    ] {
        for headers in variants {
            fixture.inner.add_response(200, &[(SESSION, BACKEND)], "{}");
            let response = fixture.post(headers, &message).await;
            assert_eq!(response.status, 200, "{message} {headers:?}");
            assert_eq!(response.header(SESSION), None, "{message} {headers:?}");
            assert_eq!(
                fixture.inner.last().header(SESSION),
                None,
                "{message} {headers:?}"
            );
        }
    }
    assert!(fixture.sessions.is_empty());
}

/// E14: GET and DELETE are not supported.
#[tokio::test]
async fn get_and_delete_are_not_served() {
    let fixture = stateless();
    for method in ["GET", "DELETE", "PUT"] {
        let response = fixture.send(method, &[(SESSION, "made-up")], "").await;
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(response.header("allow"), Some("POST"), "{method}");
        assert_eq!(fixture.decided(), (405, Some("endpoint.method")));
    }
    assert!(fixture.inner.seen().is_empty());
}

/// E11, E14: the negotiated revision must be a served one.
#[tokio::test]
async fn the_negotiated_revision_is_checked() {
    let fixture = stateless();
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}"#;
    fixture
        .inner
        .add_response(200, &[("content-type", "application/json")], body);
    assert_eq!(fixture.post(&[], initialize()).await.error(), (400, -32022));
}

/// E14: the required scopes are checked.
#[tokio::test]
async fn scopes_are_needed() {
    let mut fixture = stateless();
    let token = fixture.test_issuer.token().scope("other");
    fixture.use_token(&token);
    assert_eq!(fixture.post(&[], initialize()).await.status, 403);
    assert_eq!(
        fixture
            .post(&[], request("tools/list", json!({})))
            .await
            .status,
        403
    );
}
