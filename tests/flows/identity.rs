//! The identity headers that the upstream gets, and the credentials that it never gets.

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

/// L2, C12: the token and all other credentials are removed. Only the gateway's headers identify
/// the caller.
#[tokio::test]
async fn headers_at_the_upstream() {
    let deployment = Deployment::start().await;
    let token = deployment
        .token()
        .subject("alice")
        .client_id("editor")
        .scope("mcp:tools other")
        .sign();
    let request = Request::post(&format!("{}?a=1", Deployment::ENDPOINT), INITIALIZE)
        .bearer(&token)
        .header("DPoP", "proof-canary")
        .header("Proxy-Authorization", "Basic proxy-canary")
        .header("Cookie", "session=cookie-canary")
        .header("X-Portcullis-Subject", "mallory")
        .header("X-Portcullis-Anything", "mallory")
        .header("X_Portcullis_Subject", "mallory")
        .header("Forwarded", "for=mallory")
        .header("X-Forwarded-For", "mallory")
        .header("X-Forwarded-Host", "mallory")
        .header("X-Forwarded-Proto", "mallory")
        .header("X-Forwarded-User", "mallory")
        .header("X-Real-IP", "mallory")
        .header("X-Request-Id", "mallory")
        .header(
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        )
        .header("Expect", "100-continue")
        .header("X-Custom", "kept");
    let response = deployment.send(request).await;
    assert_eq!(response.status, 200, "{response:?}");

    let seen = deployment.upstream.last();
    let all = format!("{seen:?}");
    for canary in [
        token.as_str(),
        token.rsplit('.').next().unwrap(),
        "canary",
        "mallory",
        "Bearer",
    ] {
        assert!(
            !all.contains(canary),
            "{canary} reached the upstream: {all}"
        );
    }
    for name in [
        "authorization",
        "dpop",
        "proxy-authorization",
        "cookie",
        "x-real-ip",
        "x-forwarded-user",
        "expect",
    ] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(
        seen.header("x-portcullis-issuer"),
        Some("https://issuer.example")
    );
    assert_eq!(seen.header("x-portcullis-subject"), Some("alice"));
    assert_eq!(seen.header("x-portcullis-client"), Some("editor"));
    assert_eq!(seen.header("x-portcullis-scope"), Some("mcp:tools other"));
    assert_eq!(
        seen.header("forwarded"),
        Some("for=127.0.0.1;host=\"127.0.0.1:3000\";proto=http")
    );
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen.header("x-forwarded-host"), Some("127.0.0.1:3000"));
    assert_eq!(seen.header("x-forwarded-proto"), Some("http"));
    assert_eq!(seen.header("x-request-id"), response.header("x-request-id"));
    assert_eq!(
        seen.header("traceparent"),
        Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    );
    assert_eq!(seen.header("x-custom"), Some("kept"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(
        seen.header("content-length"),
        Some(INITIALIZE.len().to_string().as_str())
    );
    assert_eq!(seen.target, "/backend?a=1");
    assert_eq!(seen.body, INITIALIZE, "the exact bytes that were checked");
}

/// L2: header names and claims are configurable. The client's copies of these headers are removed.
/// Cookies are forwarded if configured.
#[tokio::test]
async fn configured_headers() {
    let settings = "identity_headers = { Remote-User = \"sub\", X-Tenant = \"tenant\", X-Level = \"level\" }\nforward_cookies = true";
    let deployment = Deployment::builder().resource(settings).start().await;
    let request = |token: &str| {
        Request::post(Deployment::ENDPOINT, INITIALIZE)
            .bearer(token)
            .header("Remote-User", "root")
            .header("X-Tenant", "theirs")
            .header("X-Portcullis-Subject", "root")
            .header("Cookie", "a=1")
    };
    let response = deployment
        .send(request(
            &deployment
                .token()
                .claim("tenant", "ours")
                .claim("level", 3)
                .sign(),
        ))
        .await;
    assert_eq!(response.status, 200, "{response:?}");

    let seen = deployment.upstream.last();
    assert_eq!(seen.header("remote-user"), Some("alice"));
    assert_eq!(seen.header("x-tenant"), Some("ours"));
    assert_eq!(seen.header("x-level"), Some("3"));
    assert_eq!(seen.header("x-portcullis-subject"), None);
    assert_eq!(seen.header("cookie"), Some("a=1"));

    deployment.send(request(&deployment.good_token())).await;
    assert_eq!(
        deployment.upstream.last().header("x-tenant"),
        None,
        "an absent claim causes no header, and the client's copy is removed"
    );
}

/// L2, F7: without authorization no identity headers are sent, and inbound ones are still removed.
#[tokio::test]
async fn without_authorization() {
    let deployment = Deployment::builder()
        .resource("auth = \"none\"")
        .start()
        .await;
    let request = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer("some.to.ken")
        .header("X-Portcullis-Subject", "root");
    assert_eq!(deployment.send(request).await.status, 200);
    let seen = deployment.upstream.last();
    assert_eq!(seen.header("x-portcullis-subject"), None);
    assert_eq!(seen.header("authorization"), None);
}
