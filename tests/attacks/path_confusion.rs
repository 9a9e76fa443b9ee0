//! Spellings of the endpoint's path that the gateway and the upstream could interpret differently.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, send_bytes};

/// F1: the path is compared byte for byte. Any other path gets 404 and does not reach the upstream,
/// even with a valid token.
#[tokio::test]
async fn paths_that_are_not_the_endpoint() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let mut denied = Vec::new();
    for path in [
        "/",
        "/mc",
        "/mcp/",
        "/mcp//",
        "//mcp",
        "/./mcp",
        "/mcp/.",
        "/x/../mcp",
        "/../mcp",
        "/mcp/..",
        "/mcp/../mcp",
        "/MCP",
        "/Mcp",
        "/%6dcp",
        "/%6Dcp",
        "/%2e/mcp",
        "/x/%2e%2e/mcp",
        "/x%2f..%2fmcp",
        "/%2fmcp",
        "/mcp%2f",
        "/mcp%00",
        "/mcp%20",
        "/mcp%3f",
        "/mcp%23",
        "/mcp;x=1",
        "/mcp;",
        "/;/mcp",
        "/mcp:80",
        "/mcp2",
        "/mcp.json",
        "/mcp\\",
        "/mcp/tools",
        "/backend",
        "/%252e%252e/mcp",
        "/\u{ff0e}\u{ff0e}/mcp",
        "/.well-known/oauth-protected-resource/",
        "/.well-known/oauth-protected-resource/MCP",
        "/.well-known/oauth-protected-resource/mcp/",
        "/.well-known/oauth-protected-resource//mcp",
        "/.well-known/oauth-protected-resource/%6dcp",
        "/.well-known/oauth-protected-resource/other",
        "/.WELL-KNOWN/oauth-protected-resource",
        "/mcp/.well-known/oauth-protected-resource",
        "/healthz/",
        "/readyz/x",
    ] {
        let response = deployment
            .send_as_new_client(Request::post(path, INITIALIZE).bearer(&good))
            .await;
        // The HTTP parser rejects targets that are not paths.
        if response.status != 400 {
            assert_eq!(response.status, 404, "{path}: {response:?}");
            assert_eq!(response.text(), "not found\n", "{path}");
            denied.push((response, "path.unknown"));
        }
        assert!(
            deployment.upstream.recorded().is_empty(),
            "{path} reached the upstream"
        );
    }
    assert!(
        denied.len() > 40,
        "the parser rejected too many: {}",
        denied.len()
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// F1, F3: of a target in absolute form, the path is used, and its host must equal the Host header.
#[tokio::test]
async fn absolute_targets() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let post = |target: &str, host: &str| {
        Request::without_host("POST", target)
            .header("Host", host)
            .header("Content-Type", "application/json")
            .bearer(&good)
            .body(INITIALIZE)
    };
    for (target, host, status) in [
        ("http://127.0.0.1/mcp", "127.0.0.1", 200),
        ("http://127.0.0.1:3000/mcp", "127.0.0.1:3000", 200),
        ("HTTP://LOCALHOST/mcp", "localhost", 200),
        ("http://127.0.0.1/mcp", "localhost", 403),
        ("http://attacker.example/mcp", "127.0.0.1", 403),
        ("http://127.0.0.1/mcp", "attacker.example", 403),
        ("http://attacker.example/mcp", "attacker.example", 403),
        ("http://127.0.0.1:3001/mcp", "127.0.0.1:3000", 403),
        ("http://127.0.0.1/MCP", "127.0.0.1", 404),
        ("http://127.0.0.1//mcp", "127.0.0.1", 404),
    ] {
        let before = deployment.upstream.count();
        let response = deployment.send(post(target, host)).await;
        assert_eq!(response.status, status, "{target}, {host}: {response:?}");
        assert_eq!(
            deployment.upstream.count() - before,
            usize::from(status == 200),
            "{target}, {host}"
        );
    }
}

/// F1: targets in other forms are rejected.
#[tokio::test]
async fn other_targets() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    for line in [
        "CONNECT 127.0.0.1:3000 HTTP/1.1",
        "CONNECT /mcp HTTP/1.1",
        "POST 127.0.0.1:3000 HTTP/1.1",
        "POST mcp HTTP/1.1",
        "POST * HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "POST http:/mcp HTTP/1.1",
        "POST http:///mcp HTTP/1.1",
        "POST ://127.0.0.1/mcp HTTP/1.1",
        "POST ../mcp HTTP/1.1",
        "POST  /mcp HTTP/1.1",
        "POST /mcp /mcp HTTP/1.1",
        "POST /mcp HTTP/1.1 HTTP/1.1",
        "POST /mcp HTTP/9.9",
        "POST /mcp",
    ] {
        let head = format!(
            "{line}\r\nHost: 127.0.0.1:3000\r\nAuthorization: Bearer {good}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
            INITIALIZE.len()
        );
        let response = send_bytes(deployment.portcullis.address(), head.as_bytes()).await;
        assert!(
            matches!(response.status, 400 | 403 | 404 | 405),
            "{line}: {response:?}"
        );
        assert!(
            deployment.upstream.recorded().is_empty(),
            "{line} reached the upstream"
        );
    }
}

/// F1: an unsupported method gets 405 after the bearer check.
#[tokio::test]
async fn other_methods() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    for method in [
        "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "post", "Get", "QUERY",
    ] {
        let request = Request::new(method, Deployment::ENDPOINT);
        let response = deployment.send(request.clone()).await;
        assert_eq!(response.status, 401, "{method}: {response:?}");
        assert_eq!(response.count("www-authenticate"), 1, "{method}");
        let response = deployment.send(request.bearer(&good)).await;
        assert_eq!(response.status, 405, "{method}: {response:?}");
        assert_eq!(
            response.header("allow"),
            Some("GET, POST, DELETE"),
            "{method}: {response:?}"
        );
        assert!(
            !response.text().contains(&good),
            "{method} echoes the token"
        );
        deployment
            .portcullis
            .assert_denied(&response, "endpoint.method")
            .await;
    }
    for name in [
        "X-HTTP-Method-Override",
        "X-HTTP-Method",
        "X-Method-Override",
    ] {
        let response = deployment
            .send(
                Request::new("PUT", Deployment::ENDPOINT)
                    .header(name, "POST")
                    .bearer(&good)
                    .body(INITIALIZE),
            )
            .await;
        assert_eq!(response.status, 405, "{name}: {response:?}");
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}
