//! Session identifiers that an attacker chose, guessed or modified.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, Upstream, call_message};
use serde_json::json;

/// E2, E5: an `initialize` request with a session identifier opens no session.
#[tokio::test]
async fn a_chosen_identifier() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let mut denied = Vec::new();
    for chosen in ["fixed-by-the-attacker", "backend-1", &"A".repeat(44), "x"] {
        let response = deployment
            .send(
                Request::post(Deployment::ENDPOINT, INITIALIZE)
                    .bearer(&token)
                    .session(chosen),
            )
            .await;
        response.assert_no_session();
        denied.push((response, "session.unknown"));
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// E3: the client never gets the upstream's identifier. Each session has a new one, which is long
/// enough for 128 random bits.
#[tokio::test]
async fn identifiers_are_generated_by_the_gateway() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..20 {
        let session = deployment.open_session(&token).await;
        assert!(session.len() >= 22, "{session}");
        assert!(session.len() <= 512, "{session}");
        assert!(
            session
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'),
            "{session}"
        );
        assert!(!session.contains("backend"), "{session}");
        assert!(seen.insert(session), "an identifier was issued twice");
    }

    // The upstream's own identifiers are unknown.
    let response = deployment
        .send(
            Request::post(
                Deployment::ENDPOINT,
                call_message(1, "tools/list", &json!({})),
            )
            .bearer(&token)
            .session("backend-1"),
        )
        .await;
    response.assert_no_session();
}

/// E1: only visible ASCII of at most 512 bytes is looked up. An identifier with one changed bit is
/// unknown.
#[tokio::test]
async fn modified_identifiers() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let mut modified: Vec<Vec<u8>> = Vec::new();
    for position in [0, session.len() / 2, session.len() - 1] {
        let mut bytes = session.clone().into_bytes();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        modified.push(bytes);
    }
    modified.push(session.to_ascii_uppercase().into());
    modified.push(session[1..].into());
    modified.push(session[..session.len() - 1].into());
    modified.push(format!("{session}A").into());
    modified.push(format!("{session}=").into());
    modified.push(format!("{session},{session}").into());
    modified.push(format!("{session} {session}").into());
    modified.push(format!("\"{session}\"").into());
    modified.push([session.as_bytes(), b"\xff"].concat());
    modified.push([session.as_bytes(), "é".as_bytes()].concat());
    modified.push([session.as_bytes(), b"\tx"].concat());
    modified.push(vec![b'A'; 512]);
    modified.push(vec![b'A'; 513]);
    modified.push(vec![b'A'; 4096]);
    modified.push(Vec::new());
    for identifier in modified {
        let header =
            |request: Request| request.bearer(&token).header("Mcp-Session-Id", &identifier);
        let shown = String::from_utf8_lossy(&identifier).into_owned();
        let response = deployment
            .send(header(Request::post(
                Deployment::ENDPOINT,
                call_message(1, "tools/list", &json!({})),
            )))
            .await;
        assert_eq!(response.status, 400, "{shown}: {response:?}");
        response.assert_no_session();
        for method in ["GET", "DELETE"] {
            let response = deployment
                .send(header(Request::new(method, Deployment::ENDPOINT)))
                .await;
            assert_eq!(response.status, 400, "{shown}");
            assert_eq!(
                response.text().as_str(),
                "Invalid or missing session ID",
                "{shown}"
            );
        }
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );

    let response = deployment
        .send(
            Request::post(
                Deployment::ENDPOINT,
                call_message(1, "tools/list", &json!({})),
            )
            .bearer(&token)
            .session(&session),
        )
        .await;
    assert_eq!(response.status, 200, "{response:?}");
}

/// E2: no session is opened if the upstream rejects `initialize` or fails, even if it names an
/// identifier.
#[tokio::test]
async fn no_session_without_success() {
    for status in [400, 403, 404, 500] {
        let upstream = Upstream::scripted(move |_| {
            let headers = [
                ("mcp-session-id", "backend-x"),
                ("content-type", "application/json"),
            ];
            Some(Upstream::response(
                status,
                &headers,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
            ))
        })
        .await;
        let deployment = Deployment::builder().upstream(upstream).start().await;
        let response = deployment.try_token(&deployment.good_token()).await;
        assert_eq!(response.status, status, "{response:?}");
        assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
    }
}
