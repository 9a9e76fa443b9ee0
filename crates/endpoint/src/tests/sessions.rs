//! Sessions are opened by `initialize` and used with an identifier of this endpoint.

use http::HeaderName;
use portcullis_mcp::{Era, Revision};
use serde_json::json;

use super::fixture::*;

/// E2: `initialize` is forwarded without an identifier. The response has a new one, which pages can
/// read.
#[tokio::test]
async fn initialize_opens_a_session() {
    let fixture = Fixture::open();
    fixture.inner.add_response(
        200,
        &[(SESSION, BACKEND), ("x-other", "kept")],
        "{\"result\":1}",
    );
    let response = fixture
        .post(&[("origin", "https://page.example")], initialize())
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(response.body.as_ref(), b"{\"result\":1}".as_ref());

    let identifier = response.header(SESSION).unwrap();
    assert!(identifier.len() >= 22);
    assert!(identifier != BACKEND);
    assert_eq!(response.header("x-other"), Some("kept"));

    let exposed = response
        .header("access-control-expose-headers")
        .unwrap()
        .to_ascii_lowercase();
    assert!(exposed.contains(SESSION), "{exposed}");
    assert!(exposed.contains(VERSION), "{exposed}");
    let seen = fixture.inner.last();
    assert_eq!(seen.header(SESSION), None);
    assert_eq!(seen.body.as_ref(), initialize().to_string().as_bytes());
    assert_eq!(
        seen.era,
        Era::Legacy {
            version: Some(Revision::V2025_11_25)
        }
    );
    assert_eq!(fixture.sessions.len(), 1);
}

/// E2: an `initialize` that the backend rejects opens no session, and the backend's identifier is
/// removed.
#[tokio::test]
async fn a_rejected_initialize_opens_no_session() {
    let fixture = Fixture::open();
    for status in [302, 400, 401, 404, 500] {
        fixture
            .inner
            .add_response(status, &[(SESSION, BACKEND)], "no");
        let response = fixture.post(&[], initialize()).await;
        assert_eq!(response.status, status);
        assert_eq!(response.header(SESSION), None);
        assert!(fixture.sessions.is_empty());
    }
}

/// E2, E5: `initialize` with an unknown identifier is rejected.
#[tokio::test]
async fn initialize_with_an_unknown_identifier_is_rejected() {
    let fixture = Fixture::open();
    for identifier in ["made-up", BACKEND, ""] {
        let response = fixture.post(&[(SESSION, identifier)], initialize()).await;
        assert_eq!(response.status, 400);
        assert_eq!(response.json(), no_session());
    }
    assert!(fixture.inner.seen().is_empty());
    assert!(fixture.sessions.is_empty());
}

/// E4: requests are forwarded with the backend's identifier. The client receives only the
/// endpoint's.
#[tokio::test]
async fn requests_in_a_session_are_mapped_both_ways() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    fixture.inner.add_response(200, &[(SESSION, BACKEND)], "{}");
    let response = fixture
        .post(&[(SESSION, &identifier)], request("tools/list", json!({})))
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header(SESSION), Some(&*identifier));
    assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));

    fixture
        .inner
        .add_response(200, &[(SESSION, "another-backend-session")], "{}");
    let response = fixture.send("GET", &[(SESSION, &identifier)], "").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header(SESSION), None);
    assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));

    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
        initialize(),
    ] {
        assert_eq!(
            fixture
                .post(&[(SESSION, &identifier)], &message)
                .await
                .status,
            200
        );
        assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));
    }
    assert_eq!(fixture.sessions.len(), 1);
}

/// E3: printed headers contain neither identifier.
#[tokio::test]
async fn identifiers_are_redacted_in_headers() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    fixture.inner.add_response(200, &[(SESSION, BACKEND)], "{}");
    let response = fixture
        .post(&[(SESSION, &identifier)], request("ping", json!({})))
        .await;
    let shown = format!("{:?} {:?}", response.headers, fixture.inner.last().headers);
    assert!(shown.contains(SESSION), "{shown}");
    assert!(!shown.contains(&identifier), "{shown}");
    assert!(!shown.contains(BACKEND), "{shown}");
}

/// E4: a backend without sessions receives no identifier, although its clients have one.
#[tokio::test]
async fn a_backend_without_sessions_sees_no_identifier() {
    let fixture = Fixture::open();
    let response = fixture.post(&[], initialize()).await;
    let identifier = response.header(SESSION).unwrap().to_owned();
    fixture.inner.add_response(404, &[], "no such method");
    let response = fixture
        .post(&[(SESSION, &identifier)], request("tools/list", json!({})))
        .await;
    assert_eq!(response.status, 404);
    assert_eq!(fixture.inner.last().header(SESSION), None);
    assert_eq!(fixture.sessions.len(), 1);
    fixture.inner.add_response(400, &[], "what session?");
    assert_eq!(
        fixture
            .send("DELETE", &[(SESSION, &identifier)], "")
            .await
            .status,
        204
    );
    assert!(fixture.sessions.is_empty());
}

/// E5: the response is the same for every body and content type.
#[tokio::test]
async fn a_post_without_a_session_is_rejected_for_every_body() {
    let fixture = Fixture::open();
    let json = "application/json";
    let deep = "[".repeat(1000);
    for (content_type, body) in [
        (
            json,
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.as_slice(),
        ),
        (
            json,
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ),
        (json, br#"{"jsonrpc":"2.0","method":"initialize"}"#),
        (json, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (json, b"[]"),
        (json, b"not json"),
        (json, b""),
        (json, b"\xFF\xFE"),
        (json, deep.as_bytes()),
        (
            json,
            br#"{"jsonrpc":"2.0","id":1,"method":"initialize","method":"initialize"}"#,
        ),
        ("text/plain", b"not json"),
        (
            "text/plain",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        ),
    ] {
        for headers in [
            &[][..],
            &[(SESSION, "unknown")],
            &[(SESSION, "a"), (SESSION, "a")],
            &[(VERSION, "1999-01-01")],
        ] {
            let headers = [headers, &[("content-type", content_type)]].concat();
            let response = fixture.send("POST", &headers, body.to_vec()).await;
            assert_eq!(response.status, 400, "{}", body.escape_ascii());
            assert_eq!(response.json(), no_session(), "{}", body.escape_ascii());
        }
    }
    assert!(fixture.inner.seen().is_empty());
}

/// E5, E6: headers that `Connection` lists are removed, including the session header.
#[tokio::test]
async fn headers_that_connection_lists_are_removed() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let seen = fixture.inner.seen().len();
    let headers = [
        ("connection", "close, Mcp-Session-Id"),
        (SESSION, &*identifier),
    ];
    let response = fixture
        .post(&headers, request("tools/list", json!({})))
        .await;
    assert_eq!(response.status, 400);
    assert_eq!(response.json(), no_session());
    assert_eq!(fixture.send("GET", &headers, "").await.status, 400);
    assert_eq!(fixture.inner.seen().len(), seen);
    let headers = [
        ("connection", "x-mine"),
        ("x-mine", "1"),
        (SESSION, &*identifier),
    ];
    assert_eq!(fixture.send("GET", &headers, "").await.status, 200);
    assert_eq!(fixture.inner.last().header("connection"), None);
    assert_eq!(fixture.inner.last().header("x-mine"), None);
}

/// E5: `initialize` is checked as every message is.
#[tokio::test]
async fn initialize_must_be_json() {
    let fixture = Fixture::open();
    let response = fixture
        .send(
            "POST",
            &[("content-type", "text/plain")],
            initialize().to_string(),
        )
        .await;
    assert_eq!(response.error(), (415, -32600));
    let response = fixture.post(&[(VERSION, "1999-01-01")], initialize()).await;
    assert_eq!(response.error(), (400, -32600));
    assert!(fixture.inner.seen().is_empty());
}

/// E6: GET and DELETE without a valid session get a plain text error.
#[tokio::test]
async fn get_and_delete_without_a_session_get_plain_text() {
    let fixture = Fixture::open();
    for method in ["GET", "DELETE"] {
        for headers in [
            &[][..],
            &[(SESSION, "unknown")],
            &[(SESSION, "")],
            &[(SESSION, "a"), (SESSION, "b")],
        ] {
            let response = fixture.send(method, headers, "").await;
            assert_eq!(response.status, 400);
            assert_eq!(
                response.body.as_ref(),
                b"Invalid or missing session ID".as_ref()
            );
            assert_eq!(
                response.header("content-type"),
                Some("text/plain; charset=utf-8")
            );
        }
    }
    assert!(fixture.inner.seen().is_empty());
    assert_eq!(fixture.decided(), (400, Some("session.repeated")));
}

/// E1: the name of the session header is configurable. The default header is then removed in both
/// directions.
#[tokio::test]
async fn the_session_header_can_have_another_name() {
    let mut fixture = Fixture::open();
    fixture.settings.session_header = HeaderName::from_static("acme-session-id");
    fixture.inner.add_response(
        200,
        &[("acme-session-id", BACKEND), (SESSION, "stray")],
        "{}",
    );
    let response = fixture.post(&[], initialize()).await;
    let identifier = response.header("acme-session-id").unwrap().to_owned();
    assert_eq!(response.header(SESSION), None);
    fixture
        .send(
            "GET",
            &[("acme-session-id", &identifier), (SESSION, "guess")],
            "",
        )
        .await;
    let seen = fixture.inner.last();
    assert_eq!(seen.header("acme-session-id"), Some(BACKEND));
    assert_eq!(seen.header(SESSION), None);
    assert_eq!(
        fixture
            .send("GET", &[(SESSION, &identifier)], "")
            .await
            .status,
        400
    );
}

/// E1: an identifier in any other format is unknown.
#[tokio::test]
async fn malformed_identifiers_are_unknown() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let long = "a".repeat(100_000);
    let spaced = format!("{identifier} ");
    for odd in [
        &*long,
        &spaced,
        "a b",
        "\t",
        &identifier[1..],
        &identifier.to_ascii_uppercase(),
    ] {
        let response = fixture
            .post(&[(SESSION, odd)], request("ping", json!({})))
            .await;
        assert_eq!(response.json(), no_session());
    }
}
