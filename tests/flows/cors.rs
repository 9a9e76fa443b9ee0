//! CORS for web pages of other origins.

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

const ORIGIN: &str = "http://localhost:6274";

fn preflight(path: &str) -> Request {
    Request::new("OPTIONS", path)
        .header("Origin", ORIGIN)
        .header("Access-Control-Request-Method", "POST")
        .header(
            "Access-Control-Request-Headers",
            "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method",
        )
}

fn exposed(header: &str) -> Vec<String> {
    header
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

/// F1, F2: a preflight gets a response before the bearer check; requested headers are allowed by
/// reflection.
#[tokio::test]
async fn preflight_needs_no_token() {
    let deployment = Deployment::start().await;
    let response = deployment.send(preflight(Deployment::ENDPOINT)).await;
    assert_eq!(response.status, 204, "{response:?}");
    assert_eq!(response.body.len(), 0, "{response:?}");
    assert_eq!(response.header("access-control-allow-origin"), Some(ORIGIN));
    assert_eq!(
        response.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    assert_eq!(
        response.header("access-control-allow-headers"),
        Some("authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method")
    );
    assert_eq!(response.count("access-control-allow-credentials"), 0);
    assert!(
        response
            .headers
            .iter()
            .filter(|(name, _)| name == "vary")
            .any(|(_, value)| value.contains("Origin"))
    );

    // An OPTIONS request that is not a preflight is treated like other requests.
    assert_eq!(
        deployment
            .send(Request::new("OPTIONS", Deployment::ENDPOINT).header("Origin", ORIGIN))
            .await
            .assert_unauthorized(),
        None
    );
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}

/// B6: `Access-Control-Expose-Headers` lists the challenge, the session header and the request id,
/// for every status.
#[tokio::test]
async fn exposed_headers() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let no_scope = deployment.test_issuer.token().sign();
    for (request, status) in [
        (Request::post(Deployment::ENDPOINT, INITIALIZE), 401),
        (
            Request::post(Deployment::ENDPOINT, INITIALIZE).bearer("x.y.z"),
            401,
        ),
        (
            Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&no_scope),
            403,
        ),
        (Request::post(Deployment::ENDPOINT, "{").bearer(&good), 400),
        (
            Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&good),
            200,
        ),
    ] {
        let response = deployment.send(request.header("Origin", ORIGIN)).await;
        assert_eq!(response.status, status, "{response:?}");
        assert_eq!(
            response.header("access-control-allow-origin"),
            Some(ORIGIN),
            "{response:?}"
        );
        let exposed = exposed(response.header("access-control-expose-headers").unwrap());
        for name in [
            "www-authenticate",
            "mcp-session-id",
            "mcp-protocol-version",
            "x-request-id",
        ] {
            assert!(
                exposed.iter().any(|exposed| exposed == name),
                "{name}: {response:?}"
            );
        }
    }
}

/// F2: with `proto`, the session header is exposed under its configured name.
#[tokio::test]
async fn a_session_header_with_another_prefix() {
    let deployment = Deployment::builder()
        .resource("proto = \"Acme\"")
        .start()
        .await;
    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await;
    let exposed = exposed(response.header("access-control-expose-headers").unwrap());
    assert!(
        exposed.iter().any(|name| name == "acme-session-id"),
        "{response:?}"
    );
    assert!(
        !exposed.iter().any(|name| name == "mcp-session-id"),
        "{response:?}"
    );
}
