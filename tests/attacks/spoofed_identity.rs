//! Client headers that assert an address, an identity or a certificate, which only a trusted proxy
//! can assert.

use portcullis_scenarios::{Deployment, HttpResponse, INITIALIZE, RecordedRequest, Request};

/// Headers that upstreams trust behind common proxies, in various spellings.
const ASSERTED: &[&str] = &[
    "Forwarded",
    "X-Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-User",
    "X-Forwarded-Email",
    "X-Forwarded-Groups",
    "X-Forwarded-Preferred-Username",
    "X-Forwarded-Client-Cert",
    "X-FORWARDED-USER",
    "X_Forwarded_User",
    "X-Real-IP",
    "True-Client-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "CF-Connecting-IP",
    "cf-connecting-ipv6",
    "Fastly-Client-IP",
    "X-Azure-ClientIP",
    "X-Envoy-External-Address",
    "Remote-User",
    "Remote_User",
    "X-Remote-User",
    "X-User",
    "X-User-Id",
    "x.user",
    "X-Authenticated-User",
    "X-Auth-Request-User",
    "X-Auth-Request-Email",
    "X-Goog-Authenticated-User-Email",
    "X-Goog-IAP-JWT-Assertion",
    "X-Amzn-Oidc-Identity",
    "X-Amzn-Oidc-Data",
    "X-MS-Client-Principal",
    "X-MS-CLIENT-PRINCIPAL-NAME",
    "Cf-Access-Jwt-Assertion",
    "Cf-Access-Authenticated-User-Email",
    "Client-Cert",
    "Client-Cert-Chain",
    "X-SSL-Client-Verify",
    "SSL-Client-Cert",
    "X-Client-Cert",
    "X-Appengine-User-Email",
    "Impersonate-User",
    "Tailscale-User-Login",
    "X-Hasura-Role",
    "X-Hasura-User-Id",
    "X-RH-Identity",
    "X-Subject",
    "X-Scopes",
    "X-MCP-Subject",
    "x-mcp-authenticated",
    "X_MCP_Subject",
];

/// Returns a request with all of these headers and another one.
fn spoofed(token: &str) -> Request {
    let request = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(token)
        .header("X-Custom", "kept");
    ASSERTED.iter().fold(request, |request, name| {
        request.header(name, "203.0.113.66")
    })
}

async fn forwarded(deployment: &Deployment, request: Request) -> (HttpResponse, RecordedRequest) {
    let response = deployment.send(request).await;
    assert_eq!(response.status, 200, "{response:?}");
    (response, deployment.upstream.last())
}

/// L8: no header that asserts the client is forwarded, in any spelling. Other headers are.
#[tokio::test]
async fn asserted_headers_are_removed() {
    let deployment = Deployment::start().await;
    let (_, seen) = forwarded(&deployment, spoofed(&deployment.good_token())).await;
    assert!(!format!("{seen:?}").contains("203.0.113.66"), "{seen:?}");
    assert_eq!(seen.header("x-custom"), Some("kept"));
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"));
}

/// L8: the headers of MCP and of tracing systems are forwarded: they are no assertions of a proxy.
#[tokio::test]
async fn protocol_and_trace_headers_are_forwarded() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let names = [
        "Mcp-Param-Region",
        "b3",
        "X-B3-TraceId",
        "X-Datadog-Trace-Id",
        "X-Amzn-Trace-Id",
        "uber-trace-id",
    ];
    let request = names.iter().fold(
        Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token),
        |request, name| request.header(name, "of-the-client"),
    );
    let (_, seen) = forwarded(&deployment, request).await;
    for name in names {
        assert_eq!(seen.header(name), Some("of-the-client"), "{name}");
    }
}

/// L8: `identity_headers` sets such a header from the token, and `forward_headers` forwards the
/// client's.
#[tokio::test]
async fn configured_headers() {
    let settings = "identity_headers = { X-User = \"sub\", X-Forwarded-User = \"sub\" }\n\
                    forward_headers = [\"X-Real-IP\", \"CF-Connecting-IP\", \"X-MCP-Subject\"]";
    let deployment = Deployment::builder().resource(settings).start().await;
    let token = deployment.token().subject("alice").sign();
    let (_, seen) = forwarded(&deployment, spoofed(&token)).await;
    for name in ["x-user", "x-forwarded-user"] {
        let values: Vec<_> = seen.headers.get_all(name).iter().collect();
        assert_eq!(values, ["alice"], "{name}");
    }
    let forwarded: Vec<_> = seen
        .headers
        .iter()
        .filter(|(_, value)| *value == "203.0.113.66")
        .map(|(name, _)| name)
        .collect();
    assert_eq!(forwarded.len(), 3, "{forwarded:?}");

    for name in ["x-real-ip", "cf-connecting-ip", "x-mcp-subject"] {
        assert_eq!(seen.header(name), Some("203.0.113.66"), "{name}");
    }
}

/// L8, J5: behind a trusted proxy the upstream gets the address of the proxy's client, and none
/// that the client asserts.
#[tokio::test]
async fn the_address_behind_a_trusted_proxy() {
    let deployment = Deployment::builder()
        .top("trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]")
        .start()
        .await;
    for (value, expected) in [
        ("198.51.100.7", "198.51.100.7"),
        ("203.0.113.66, 198.51.100.7", "198.51.100.7"),
        ("203.0.113.66, 198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("garbage", "127.0.0.1"),
    ] {
        let request = Request::post(Deployment::ENDPOINT, INITIALIZE)
            .bearer(&deployment.good_token())
            .header("X-Forwarded-For", value);
        let (_, seen) =
            forwarded(&deployment, request.header("Forwarded", "for=203.0.113.66")).await;
        assert_eq!(seen.header("x-forwarded-for"), Some(expected), "{value}");
        let node = if expected.contains(':') {
            format!("\"[{expected}]\"")
        } else {
            expected.to_owned()
        };
        assert!(
            seen.header("forwarded")
                .unwrap()
                .starts_with(&format!("for={node};")),
            "{seen:?}"
        );
    }
}

/// F11: the upstream gets one spelling of the content type, not the client's.
#[tokio::test]
async fn the_content_type_is_normalized() {
    let deployment = Deployment::start().await;
    for spelling in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json ;Charset=\"UTF-8\"",
    ] {
        let request = Request::new("POST", Deployment::ENDPOINT)
            .header("Content-Type", spelling)
            .header("Accept", "application/json, text/event-stream")
            .bearer(&deployment.good_token())
            .body(INITIALIZE);
        let (_, seen) = forwarded(&deployment, request).await;
        let types: Vec<_> = seen.headers.get_all("content-type").iter().collect();
        assert_eq!(types, ["application/json"], "{spelling}");
        assert_eq!(seen.header("content-encoding"), None);
    }
}
