//! Upstream responses that a client could mistake for the guard's own.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, Upstream};

/// What no response may have. The identifiers that the guard generates have no dot.
const EVIL: &str = "evil.upstream";

async fn deployment_with_response(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
) -> Deployment {
    let upstream = Upstream::scripted(move |_| {
        Some(Upstream::response(status, headers, "upstream's own text"))
    })
    .await;
    Deployment::builder().upstream(upstream).start().await
}

const CHALLENGES: &[(&str, &str)] = &[
    (
        "www-authenticate",
        "Bearer realm=\"evil.upstream\", resource_metadata=\"https://attacker.example/prm\"",
    ),
    ("www-authenticate", "Basic realm=\"evil.upstream\""),
    ("proxy-authenticate", "Basic realm=\"evil.upstream\""),
    ("authentication-info", "nextnonce=\"x\""),
    ("content-type", "application/json"),
];

/// L1: an upstream's 401 and 407 become 502 without their challenge and text; its 403 is forwarded,
/// without the challenge.
#[tokio::test]
async fn rejections_of_the_upstream() {
    for (upstream_status, status, code) in [
        (401, 502, Some("upstream.unauthorized")),
        (407, 502, Some("upstream.unauthorized")),
        (403, 403, None),
        (200, 200, None),
    ] {
        let deployment = deployment_with_response(upstream_status, CHALLENGES).await;
        let response = deployment.try_token(&deployment.good_token()).await;
        assert_eq!(response.status, status, "{upstream_status}: {response:?}");
        for name in [
            "www-authenticate",
            "proxy-authenticate",
            "authentication-info",
        ] {
            assert_eq!(response.count(name), 0, "{upstream_status}: {response:?}");
        }
        assert!(
            !format!("{response:?}").contains(EVIL),
            "{upstream_status}: {response:?}"
        );
        match code {
            Some(code) => {
                assert!(
                    !response.text().contains("upstream's own text"),
                    "{response:?}"
                );
                response.assert_rpc_error(502, -32603);
                deployment.portcullis.assert_denied(&response, code).await;
            }
            None => assert_eq!(response.text(), "upstream's own text"),
        }
    }
}

/// L1, F2: an upstream cannot set cookies, a request id or CORS headers, or a session if there is
/// none.
#[tokio::test]
async fn headers_of_the_upstream() {
    let deployment = deployment_with_response(
        200,
        &[
            ("set-cookie", "session=evil.upstream"),
            ("x-request-id", "evil.upstream"),
            ("access-control-allow-origin", "https://attacker.example"),
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-headers", "*"),
            ("access-control-expose-headers", "x-secret"),
            ("access-control-allow-private-network", "true"),
            ("connection", "x-internal"),
            ("x-internal", "evil.upstream"),
            ("keep-alive", "timeout=evil.upstream"),
            ("mcp-session-id", "evil.upstream"),
            ("content-type", "application/json"),
        ],
    )
    .await;
    let request = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(&deployment.good_token())
        .header("Origin", "http://localhost:1");
    let response = deployment.send(request).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert!(!format!("{response:?}").contains(EVIL), "{response:?}");

    for name in [
        "set-cookie",
        "access-control-allow-credentials",
        "access-control-allow-headers",
        "x-internal",
        "keep-alive",
    ] {
        assert_eq!(response.count(name), 0, "{name}: {response:?}");
    }
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some("http://localhost:1")
    );
    assert_eq!(response.count("access-control-allow-origin"), 1);
    assert!(
        !response
            .header("access-control-expose-headers")
            .unwrap()
            .contains("x-secret")
    );
    assert_eq!(response.count("x-request-id"), 1);
    assert_eq!(
        response.count("mcp-session-id"),
        1,
        "only the gateway's session identifier: {response:?}"
    );
}
