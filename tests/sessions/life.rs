//! Sessions are opened and used, side by side and with refreshed tokens.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, call_message};
use portcullis_testkit::TokenBuilder;
use serde_json::json;

/// E2, E4: `initialize` opens a session, and only its response has the identifier. Later requests
/// reach the upstream with the upstream's own identifier.
#[tokio::test]
async fn opened_and_used() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let opened = deployment.try_token(&token).await;
    assert_eq!(opened.status, 200, "{opened:?}");
    assert_eq!(opened.count("mcp-session-id"), 1, "{opened:?}");
    assert_eq!(
        opened.json()["result"]["protocolVersion"],
        "2025-11-25",
        "{opened:?}"
    );

    let session = opened.header("mcp-session-id").unwrap();
    assert_eq!(deployment.upstream.last().header("mcp-session-id"), None);

    let in_session = |request: Request| request.bearer(&token).session(session);
    let response = deployment
        .send(in_session(Request::post(
            Deployment::ENDPOINT,
            call_message(2, "echo", &json!({ "x": 1 })),
        )))
        .await;
    assert_eq!(response.json()["result"], json!({ "x": 1 }), "{response:?}");

    let backend = deployment
        .upstream
        .last()
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    assert!(backend.starts_with("backend-"), "{backend}");

    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let response = deployment
        .send(in_session(Request::post(
            Deployment::ENDPOINT,
            notification,
        )))
        .await;
    assert_eq!(response.status, 202, "{response:?}");
    assert_eq!(response.body.len(), 0, "{response:?}");

    let response = deployment
        .send(in_session(Request::post(
            Deployment::ENDPOINT,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        )))
        .await;
    assert_eq!(
        response.status, 202,
        "a response to the server's own request: {response:?}"
    );

    let get = Request::new("GET", Deployment::ENDPOINT).header("Accept", "text/event-stream");
    let response = deployment.send(in_session(get)).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(
        response.header("content-type"),
        Some("text/event-stream"),
        "{response:?}"
    );

    for seen in deployment.upstream.recorded().iter().skip(1) {
        assert_eq!(
            seen.header("mcp-session-id"),
            Some(backend.as_str()),
            "{seen:?}"
        );
    }
}

/// E4: sessions are independent, and each has its own identifier at the upstream.
#[tokio::test]
async fn side_by_side() {
    let deployment = Deployment::start().await;
    let tokens =
        ["alice", "bob", "alice"].map(|subject| deployment.token().subject(subject).sign());
    let mut sessions = Vec::new();
    for token in &tokens {
        let session = deployment.open_session(token).await;
        deployment.echo(token, &session).await;
        sessions.push(
            deployment
                .upstream
                .last()
                .header("mcp-session-id")
                .unwrap()
                .to_owned(),
        );
    }
    sessions.sort_unstable();
    sessions.dedup();
    assert_eq!(sessions.len(), 3);
}

/// E4, E7: another token of the same owner continues the session, regardless of its other claims.
#[tokio::test]
async fn a_refreshed_token() {
    let deployment = Deployment::start().await;
    let session = deployment.open_session(&deployment.token().sign()).await;
    let refreshed: [TokenBuilder; 3] = [
        deployment.token().expires_in(200),
        deployment.token().claim("sid", "another"),
        deployment.token().scope("mcp:tools mcp:admin"),
    ];
    for token in refreshed {
        assert_eq!(deployment.echo(&token.sign(), &session).await.status, 200);
    }
}

/// E7: a token without `sub` opens no session, unless its issuer allows clients to own sessions; a
/// client never equals a subject.
#[tokio::test]
async fn tokens_without_a_subject() {
    let deployment = Deployment::start().await;
    let response = deployment
        .try_token(&deployment.token().without("sub").sign())
        .await;
    assert_eq!(response.status, 403, "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
    assert_eq!(response.count("www-authenticate"), 0, "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "session.no_owner")
        .await;
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );

    let deployment = Deployment::builder()
        .issuer("subjectless = \"client\"")
        .start()
        .await;
    let machine = deployment.token().without("sub").client_id("robot").sign();
    let session = deployment.open_session(&machine).await;
    assert_eq!(deployment.echo(&machine, &session).await.status, 200);

    for token in [
        deployment.token().subject("robot").sign(),
        deployment
            .token()
            .subject("robot")
            .client_id("robot")
            .sign(),
        deployment.token().without("sub").client_id("other").sign(),
    ] {
        deployment.echo(&token, &session).await.assert_no_session();
    }
}

/// E1: the header's prefix is configurable. `Mcp-Session-Id` then has no effect.
#[tokio::test]
async fn another_protocol() {
    let deployment = Deployment::builder()
        .resource("proto = \"Acme\"")
        .start()
        .await;
    let token = deployment.good_token();
    let opened = deployment.try_token(&token).await;
    // The upstream of this test uses `Mcp-Session-Id`, which is not translated here.
    let session = opened
        .header("acme-session-id")
        .unwrap_or_else(|| panic!("{opened:?}"))
        .to_owned();
    let post =
        || Request::post(Deployment::ENDPOINT, call_message(2, "echo", &json!({}))).bearer(&token);
    let response = deployment
        .send(post().header("ACME-SESSION-ID", &session))
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    let before = deployment.upstream.count();
    deployment
        .send(post().session(&session))
        .await
        .assert_no_session();
    assert_eq!(deployment.upstream.count(), before);
    deployment
        .send(post().header("Acme-Session-Id", &session).session("stray"))
        .await;
    assert_eq!(
        deployment.upstream.last().header("mcp-session-id"),
        None,
        "a stray identifier was forwarded"
    );
}

/// E2: an `initialize` request needs an id and a valid envelope. Notifications open no session.
#[tokio::test]
async fn what_opens_no_session() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    for body in [
        r#"{"jsonrpc":"2.0","method":"initialize","params":{}}"#.to_owned(),
        INITIALIZE.replace("2.0", "1.0"),
        INITIALIZE.replace("initialize", "Initialize"),
        INITIALIZE.replace("initialize", "initialize "),
        INITIALIZE.replace("\"id\":1", "\"id\":null"),
        INITIALIZE.replace("\"id\":1", "\"id\":{}"),
    ] {
        let response = deployment
            .send(Request::post(Deployment::ENDPOINT, body.as_str()).bearer(&token))
            .await;
        response.assert_no_session();
    }
    let untyped = Request::new("POST", Deployment::ENDPOINT)
        .header("Content-Type", "text/plain")
        .bearer(&token)
        .body(INITIALIZE);
    let response = deployment.send(untyped).await;
    assert_eq!(response.status, 415, "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );

    // Escapes do not hide the method.
    let escaped = INITIALIZE.replace("initialize", "\\u0069nitialize");
    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, escaped).bearer(&token))
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 1, "{response:?}");
}

/// F4: in a session, invalid JSON gets -32700, invalid JSON-RPC -32600, and another content type
/// 415.
#[tokio::test]
async fn bodies_in_a_session() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let post = |body: &str| {
        Request::post(Deployment::ENDPOINT, body)
            .bearer(&token)
            .session(&session)
    };
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x"} trailing"#, -32700),
        ("{}", -32600),
        ("1", -32600),
        ("null", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            -32602,
        ),
    ] {
        deployment
            .send(post(body))
            .await
            .assert_rpc_error(400, code);
    }
    let list = call_message(1, "tools/list", &json!({}));
    for (name, value) in [
        ("Content-Type", "text/plain"),
        ("Content-Type", "application/json; charset=utf-16"),
        ("Content-Type", "application/jsonp"),
        ("Content-Type", ""),
    ] {
        let request = Request::new("POST", Deployment::ENDPOINT)
            .header(name, value)
            .bearer(&token)
            .session(&session)
            .body(list.as_str());
        let response = deployment.send(request).await;
        assert_eq!(response.status, 415, "{value}: {response:?}");
        deployment
            .portcullis
            .assert_denied(&response, "body.content_type")
            .await;
    }
    let response = deployment
        .send(post(&list).header("Content-Encoding", "gzip"))
        .await;
    assert_eq!(response.status, 415, "{response:?}");
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}
