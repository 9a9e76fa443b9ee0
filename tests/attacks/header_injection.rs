//! Line ends, literal and encoded, in every value that could become a header of a request or
//! response.

use portcullis_scenarios::{
    Deployment, INITIALIZE, RawUpstream, Request, call_message, modern_call_message, send_bytes,
};
use serde_json::json;

/// B4, F4: control bytes in a head are rejected before any other check, and no injected header is
/// in the response.
#[tokio::test]
async fn control_bytes_in_the_head() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let post = |line: &[u8]| {
        Request::post(Deployment::ENDPOINT, INITIALIZE)
            .bearer(&good)
            .raw_lines(line)
            .to_bytes()
    };
    let heads: Vec<Vec<u8>> = vec![
        post(b"X-A: b\rX-Evil: 1\r\n"),
        post(b"X-A: b\0c\r\n"),
        post(b"X-A: \x7f\r\n"),
        post(b"X\0A: b\r\n"),
        post(b"X-A : b\r\n"),
        post(b": b\r\n"),
        post(b"X A: b\r\n"),
        post(b"X-A: b\r\n X-Evil: 1\r\n"),
        post(b"Mcp-Session-Id: a\rX-Evil: 1\r\n"),
        format!("POST /mcp\rX-Evil: 1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {good}\r\n\r\n").into(),
        format!("POST /mcp\0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {good}\r\n\r\n").into(),
        format!("PO\rST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {good}\r\n\r\n").into(),
    ];
    for head in heads {
        let response = send_bytes(deployment.portcullis.address(), &head).await;
        assert_eq!(
            response.status,
            400,
            "{}\n{response:?}",
            String::from_utf8_lossy(&head)
        );
        assert_eq!(response.count("x-evil"), 0, "{response:?}");
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
    deployment
        .assert_accepted("the server continues", &good)
        .await;
}

/// B4, F1: encoded line ends in path, query and session header stay encoded and are not reflected.
#[tokio::test]
async fn encoded_line_ends() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    for (target, status) in [
        ("/mcp%0d%0aX-Evil:%201", 404),
        ("/%0d%0aX-Evil:%201/mcp", 404),
        (
            "/.well-known/oauth-protected-resource/mcp%0d%0aX-Evil:%201",
            404,
        ),
        ("/mcp?a=%0d%0aX-Evil:%201", 200),
        ("/mcp?%E5%98%8D%E5%98%8AX-Evil:%201", 200),
    ] {
        let response = deployment
            .send(Request::post(target, INITIALIZE).bearer(&good))
            .await;
        assert_eq!(response.status, status, "{target}: {response:?}");
        assert!(
            !format!("{response:?}")
                .to_ascii_lowercase()
                .contains("x-evil"),
            "{target}: {response:?}"
        );
        if status == 200 {
            let seen = deployment.upstream.last();
            assert_eq!(seen.target, target.replace("/mcp", "/backend"));
            assert!(!seen.headers.contains_key("x-evil"));
        } else {
            deployment
                .portcullis
                .assert_denied(&response, "path.unknown")
                .await;
        }
    }
    for identifier in [
        "%0d%0aX-Evil: 1",
        "\\r\\nX-Evil: 1",
        "\u{560d}\u{560a}X-Evil: 1",
    ] {
        let request = Request::post(
            Deployment::ENDPOINT,
            call_message(1, "tools/list", &json!({})),
        )
        .bearer(&good)
        .session(identifier);
        let response = deployment.send(request).await;
        response.assert_no_session();
        assert!(!format!("{response:?}").contains("Evil"), "{response:?}");
    }
}

/// L2: claims are encoded in upstream headers: no line end, no byte outside visible ASCII, no bare
/// percent sign.
#[tokio::test]
async fn claims_upstream() {
    let headers = "identity_headers = { X-User = \"sub\", X-Client = \"client_id\", X-Email = \"email\", X-Groups = \"/realm/groups\", X-Scopes = \"scope\" }";
    let deployment = Deployment::builder().resource(headers).start().await;
    let cases = [
        ("alice\r\nX-Evil: 1", "alice%0D%0AX-Evil:%201"),
        ("alice\nX-Evil: 1", "alice%0AX-Evil:%201"),
        ("alice\rb", "alice%0Db"),
        ("alice%0d%0aX-Evil: 1", "alice%250d%250aX-Evil:%201"),
        ("a\u{0}b", "a%00b"),
        ("zoë", "zo%C3%AB"),
        ("嘊嘍X", "%E5%98%8A%E5%98%8DX"),
        ("\u{2028}\u{85}", "%E2%80%A8%C2%85"),
        ("a,b;c=\"d\"", "a,b;c=\"d\""),
        ("admin root", "admin%20root"),
    ];
    for (text, encoded) in cases {
        let token = deployment
            .token()
            .subject(text)
            .client_id(text)
            .claim("email", text)
            .claim("realm", json!({ "groups": [text, "staff"] }))
            .sign();
        let response = deployment.try_token(&token).await;
        assert_eq!(response.status, 200, "{text:?}: {response:?}");
        let seen = deployment.upstream.last();
        assert_eq!(seen.header("x-user"), Some(encoded), "{text:?}");
        assert_eq!(seen.header("x-client"), Some(encoded), "{text:?}");
        assert_eq!(seen.header("x-email"), Some(encoded), "{text:?}");
        assert_eq!(
            seen.header("x-groups"),
            Some(format!("{encoded} staff").as_str()),
            "{text:?}"
        );
        assert_eq!(seen.header("x-scopes"), Some("mcp:tools"));
        assert!(!seen.headers.contains_key("x-evil"), "{seen:?}");
    }
}

/// J1: a line end in a claim or a path does not cause a second log line.
#[tokio::test]
async fn claims_in_the_log() {
    let deployment = Deployment::start().await;
    let subject = "alice\r\n{\"message\":\"forged\"}\n\u{1b}[31m";
    let response = deployment
        .try_token(
            &deployment
                .token()
                .subject(subject)
                .client_id(subject)
                .sign(),
        )
        .await;
    let line = deployment.portcullis.access_line(&response).await;
    assert_eq!(line["principal.subject"], subject);
    for line in deployment.portcullis.log().lines() {
        let line: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert_ne!(line["message"], "forged");
    }
    assert!(
        !deployment.portcullis.log().contains('\u{1b}'),
        "a terminal sequence is in the log"
    );
}

/// B4, F5: text from a message is returned only in JSON, escaped.
#[tokio::test]
async fn message_text_is_returned_as_json() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let mut message: serde_json::Value =
        serde_json::from_str(&modern_call_message(1, "tools/list", &json!({}))).unwrap();
    let evil = "2026\r\nX-Evil: 1\"}";
    message["id"] = json!(evil);
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(evil);
    let request = Request::post(Deployment::ENDPOINT, message.to_string())
        .bearer(&good)
        .header("MCP-Protocol-Version", "2026")
        .header("Mcp-Method", "tools/list");
    let response = deployment.send(request).await;
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(response.json()["id"], evil);
    assert_eq!(response.count("x-evil"), 0);
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// L1: no injected header of an upstream's split response reaches the client.
#[tokio::test]
async fn response_splitting() {
    for (case, response, status) in [
        ("a bare CR", &b"HTTP/1.1 200 OK\r\nX-A: b\rX-Evil: 1\r\nContent-Length: 0\r\n\r\n"[..], 502),
        ("a NUL", b"HTTP/1.1 200 OK\r\nX-A: b\0X-Evil: 1\r\nContent-Length: 0\r\n\r\n", 502),
        ("two lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 70\r\n\r\n{}HTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n", 502),
        ("a negative length", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\nX-Evil: 1\r\n\r\n", 502),
        ("not HTTP", b"X-Evil: 1\r\n\r\n", 502),
        ("an empty response", b"", 502),
        ("switching protocols", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\nX-Evil: 1\r\n\r\n", 502),
        ("bytes after the end", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nX-Evil: 1\r\nContent-Length: 0\r\n\r\n", 200),
    ] {
        let raw = RawUpstream::start(response).await;
        let deployment = Deployment::builder().upstream_setting(raw.setting()).start().await;
        let good = deployment.good_token();
        for round in 0..2 {
            let response = deployment.try_token(&good).await;
            assert_eq!(response.status, status, "{case}, round {round}: {response:?}");
            assert_eq!(response.count("x-evil"), 0, "{case}: {response:?}");
            assert!(!response.text().contains("Evil"), "{case}: {response:?}");
            assert_eq!(response.header("x-request-id").map(str::len), Some(36), "{case}: {response:?}");
        }
    }
}

/// F2: the requested headers of a preflight are reflected only if they are a list of names.
#[tokio::test]
async fn reflected_preflight() {
    let deployment = Deployment::start().await;
    let preflight = |requested: &[u8]| {
        Request::new("OPTIONS", Deployment::ENDPOINT)
            .header("Origin", "http://localhost:5173")
            .header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", requested)
    };
    let response = deployment.send(preflight(b"authorization, x-a")).await;
    assert_eq!(
        response.header("access-control-allow-headers"),
        Some("authorization, x-a")
    );

    for requested in [
        &b"x-a\xff"[..],
        b"x-a: b",
        b"x-a\tx-b",
        b"\"x\"",
        b"x-a;b",
        b"x(a)",
    ] {
        let response = deployment.send(preflight(requested)).await;
        assert_eq!(response.status, 204, "{response:?}");
        assert_eq!(
            response.count("access-control-allow-headers"),
            0,
            "{response:?}"
        );
    }
}
