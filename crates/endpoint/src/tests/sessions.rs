//! How a session is opened and used.

use http::HeaderName;
use portcullis_mcp::{Era, Revision};
use serde_json::json;

use super::fixture::*;

/// E2: initialize goes on without an identifier, and its response carries one of ours, exposed to pages.
#[tokio::test]
async fn initialize_opens_a_session() {
    let fixture = Fixture::open();
    fixture.inner.responds(200, &[(SESSION, BACKEND), ("x-other", "kept")], "{\"result\":1}");
    let response = fixture.post(&[("origin", "https://page.example")], initialize()).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.body.as_ref(), b"{\"result\":1}".as_ref());

    let identifier = response.header(SESSION).unwrap();
    assert!(identifier.len() >= 22);
    assert!(identifier != BACKEND);
    assert_eq!(response.header("x-other"), Some("kept"));

    let exposed = response.header("access-control-expose-headers").unwrap().to_ascii_lowercase();
    assert!(exposed.contains(SESSION), "{exposed}");
    assert!(exposed.contains(VERSION), "{exposed}");
    let seen = fixture.inner.last();
    assert_eq!(seen.header(SESSION), None);
    assert_eq!(seen.body.as_ref(), initialize().to_string().as_bytes());
    assert_eq!(seen.era, Era::Legacy { version: Some(Revision::V2025_11_25) });
    assert_eq!(fixture.sessions.len(), 1);
}

/// E2: what the backend does not accept opens nothing, and no identifier of its own comes through.
#[tokio::test]
async fn a_refused_initialize_opens_nothing() {
    let fixture = Fixture::open();
    for status in [302, 400, 401, 404, 500] {
        fixture.inner.responds(status, &[(SESSION, BACKEND)], "no");
        let response = fixture.post(&[], initialize()).await;
        assert_eq!(response.status, status);
        assert_eq!(response.header(SESSION), None);
        assert!(fixture.sessions.is_empty());
    }
}

/// E2, E5: initialize with an identifier that names no session is no initialize.
#[tokio::test]
async fn initialize_with_an_unknown_identifier_is_refused() {
    let fixture = Fixture::open();
    for identifier in ["made-up", BACKEND, ""] {
        let response = fixture.post(&[(SESSION, identifier)], initialize()).await;
        assert_eq!(response.status, 400);
        assert_eq!(response.json(), no_session());
    }
    assert!(fixture.inner.seen().is_empty());
    assert!(fixture.sessions.is_empty());
}

/// E4: requests go to the session with the backend's own identifier; the client sees only ours.
#[tokio::test]
async fn requests_in_a_session_are_mapped_both_ways() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    fixture.inner.responds(200, &[(SESSION, BACKEND)], "{}");
    let response = fixture.post(&[(SESSION, &identifier)], request("tools/list", json!({}))).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header(SESSION), Some(&*identifier));
    assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));

    fixture.inner.responds(200, &[(SESSION, "another-backend-session")], "{}");
    let response = fixture.send("GET", &[(SESSION, &identifier)], "").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header(SESSION), None);
    assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));

    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 3, "result": {}}),
        initialize(),
    ] {
        assert_eq!(fixture.post(&[(SESSION, &identifier)], &message).await.status, 200);
        assert_eq!(fixture.inner.last().header(SESSION), Some(BACKEND));
    }
    assert_eq!(fixture.sessions.len(), 1);
}

/// E3: neither side's identifier shows where headers are printed.
#[tokio::test]
async fn identifiers_are_redacted_in_headers() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    fixture.inner.responds(200, &[(SESSION, BACKEND)], "{}");
    let response = fixture.post(&[(SESSION, &identifier)], request("ping", json!({}))).await;
    let shown = format!("{:?} {:?}", response.headers, fixture.inner.last().headers);
    assert!(shown.contains(SESSION), "{shown}");
    assert!(!shown.contains(&identifier), "{shown}");
    assert!(!shown.contains(BACKEND), "{shown}");
}

/// E4: a backend without sessions of its own is given no identifier, and its clients have one all the same.
#[tokio::test]
async fn a_backend_without_sessions_sees_no_identifier() {
    let fixture = Fixture::open();
    let response = fixture.post(&[], initialize()).await;
    let identifier = response.header(SESSION).unwrap().to_owned();
    fixture.inner.responds(404, &[], "no such method");
    let response = fixture.post(&[(SESSION, &identifier)], request("tools/list", json!({}))).await;
    assert_eq!(response.status, 404);
    assert_eq!(fixture.inner.last().header(SESSION), None);
    assert_eq!(fixture.sessions.len(), 1);
    fixture.inner.responds(400, &[], "what session?");
    assert_eq!(fixture.send("DELETE", &[(SESSION, &identifier)], "").await.status, 204);
    assert!(fixture.sessions.is_empty());
}

/// E5: the response is the same for every body and content type.
#[tokio::test]
async fn a_post_without_a_session_is_rejected_for_every_body() {
    let fixture = Fixture::open();
    let json = "application/json";
    let deep = "[".repeat(1000);
    for (content_type, body) in [
        (json, br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.as_slice()),
        (json, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        (json, br#"{"jsonrpc":"2.0","method":"initialize"}"#),
        (json, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (json, b"[]"),
        (json, b"not json"),
        (json, b""),
        (json, b"\xFF\xFE"),
        (json, deep.as_bytes()),
        (json, br#"{"jsonrpc":"2.0","id":1,"method":"initialize","method":"initialize"}"#),
        ("text/plain", b"not json"),
        ("text/plain", br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
    ] {
        for headers in [&[][..], &[(SESSION, "unknown")], &[(SESSION, "a"), (SESSION, "a")], &[(VERSION, "1999-01-01")]]
        {
            let headers = [headers, &[("content-type", content_type)]].concat();
            let response = fixture.send("POST", &headers, body.to_vec()).await;
            assert_eq!(response.status, 400, "{}", body.escape_ascii());
            assert_eq!(response.json(), no_session(), "{}", body.escape_ascii());
        }
    }
    assert!(fixture.inner.seen().is_empty());
}

/// E5, E6: a session that `Connection` names away is none, and nothing else that it names goes on.
#[tokio::test]
async fn connection_options_are_no_part_of_a_request() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let seen = fixture.inner.seen().len();
    let headers = [("connection", "close, Mcp-Session-Id"), (SESSION, &*identifier)];
    let response = fixture.post(&headers, request("tools/list", json!({}))).await;
    assert_eq!(response.status, 400);
    assert_eq!(response.json(), no_session());
    assert_eq!(fixture.send("GET", &headers, "").await.status, 400);
    assert_eq!(fixture.inner.seen().len(), seen);
    let headers = [("connection", "x-mine"), ("x-mine", "1"), (SESSION, &*identifier)];
    assert_eq!(fixture.send("GET", &headers, "").await.status, 200);
    assert_eq!(fixture.inner.last().header("connection"), None);
    assert_eq!(fixture.inner.last().header("x-mine"), None);
}

/// E5: initialize is checked like any message.
#[tokio::test]
async fn initialize_must_be_json() {
    let fixture = Fixture::open();
    let response = fixture.send("POST", &[("content-type", "text/plain")], initialize().to_string()).await;
    assert_eq!(response.error(), (415, -32600));
    let response = fixture.post(&[(VERSION, "1999-01-01")], initialize()).await;
    assert_eq!(response.error(), (400, -32600));
    assert!(fixture.inner.seen().is_empty());
}

/// E6: GET and DELETE without a usable session get plain text.
#[tokio::test]
async fn streams_without_a_session_are_refused_in_plain_text() {
    let fixture = Fixture::open();
    for method in ["GET", "DELETE"] {
        for headers in [&[][..], &[(SESSION, "unknown")], &[(SESSION, "")], &[(SESSION, "a"), (SESSION, "b")]] {
            let response = fixture.send(method, headers, "").await;
            assert_eq!(response.status, 400);
            assert_eq!(response.body.as_ref(), b"Invalid or missing session ID".as_ref());
            assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        }
    }
    assert!(fixture.inner.seen().is_empty());
    assert_eq!(fixture.decided(), (400, Some("session.repeated")));
}

/// E1: the header's name is configurable; under the usual name nothing passes in either direction.
#[tokio::test]
async fn the_session_header_can_have_another_name() {
    let mut fixture = Fixture::open();
    fixture.settings.session_header = HeaderName::from_static("acme-session-id");
    fixture.inner.responds(200, &[("acme-session-id", BACKEND), (SESSION, "stray")], "{}");
    let response = fixture.post(&[], initialize()).await;
    let identifier = response.header("acme-session-id").unwrap().to_owned();
    assert_eq!(response.header(SESSION), None);
    fixture.send("GET", &[("acme-session-id", &identifier), (SESSION, "guess")], "").await;
    let seen = fixture.inner.last();
    assert_eq!(seen.header("acme-session-id"), Some(BACKEND));
    assert_eq!(seen.header(SESSION), None);
    assert_eq!(fixture.send("GET", &[(SESSION, &identifier)], "").await.status, 400);
}

/// E1: any identifier that is not ours is an unknown one, however odd.
#[tokio::test]
async fn odd_identifiers_are_unknown() {
    let fixture = Fixture::open();
    let identifier = fixture.initialize().await;
    let long = "a".repeat(100_000);
    let spaced = format!("{identifier} ");
    for odd in [&*long, &spaced, "a b", "\t", &identifier[1..], &identifier.to_ascii_uppercase()] {
        let response = fixture.post(&[(SESSION, odd)], request("ping", json!({}))).await;
        assert_eq!(response.json(), no_session());
    }
}
