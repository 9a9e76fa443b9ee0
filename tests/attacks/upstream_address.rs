//! Disclosure of the upstream's address, and client parameters that conflict with the configured
//! address.

use portcullis_scenarios::{Deployment, INITIALIZE, RawUpstream, Request, Upstream};

/// L10: a redirect of the upstream becomes 502. Only the log has the target, without secrets, as
/// the address to configure.
#[tokio::test]
async fn redirects() {
    for (status, location, logged) in [
        (307, "/backend/", "/backend/;"),
        (
            308,
            "http://10.1.2.3:8080/mcp?key=canary#canary",
            "http://10.1.2.3:8080/mcp;",
        ),
        (
            301,
            "https://user:canary@internal.example/mcp",
            "https://internal.example/mcp;",
        ),
        (
            302,
            "//internal.example/login",
            "http://internal.example/login;",
        ),
        (303, "\u{e9}\u{ff}", "an invalid address;"),
    ] {
        let response = format!(
            "HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        );
        let raw = RawUpstream::start(response).await;
        let deployment = Deployment::builder()
            .upstream_setting(raw.setting())
            .start()
            .await;
        let response = deployment.try_token(&deployment.good_token()).await;
        response.assert_rpc_error(502, -32603);
        assert_eq!(response.count("location"), 0, "{response:?}");
        for internal in ["10.1.2.3", "internal", "canary", "backend"] {
            assert!(!format!("{response:?}").contains(internal), "{response:?}");
        }
        deployment
            .portcullis
            .assert_denied(&response, "upstream.redirect")
            .await;
        let line = deployment
            .portcullis
            .logged_line(&["the upstream redirects to", logged, "`upstream`"])
            .await;
        assert!(!line.contains("canary"), "{line}");
    }
}

/// L10: headers of other responses disclose no address of the upstream.
#[tokio::test]
async fn addresses_in_headers() {
    let script = |_: &portcullis_scenarios::RecordedRequest| {
        let headers = [
            ("content-type", "application/json"),
            ("location", "http://10.1.2.3/created"),
            ("content-location", "http://10.1.2.3/created"),
            ("refresh", "0; url=http://10.1.2.3/"),
            ("alt-svc", "h2=\"10.1.2.3:443\""),
            ("x-kept", "yes"),
        ];
        Some(Upstream::response(201, &headers, "{}"))
    };
    let deployment = Deployment::builder()
        .upstream(Upstream::scripted(script).await)
        .start()
        .await;
    let response = deployment.try_token(&deployment.good_token()).await;
    assert_eq!(response.status, 201, "{response:?}");
    assert_eq!(response.header("x-kept"), Some("yes"), "{response:?}");
    assert!(
        !format!("{response:?}").contains("10.1.2.3"),
        "{response:?}"
    );
}

/// L1: a parameter that is fixed in `upstream` cannot be set by a client, in the notation of any
/// common server.
#[tokio::test]
async fn fixed_parameters() {
    let upstream = Upstream::start().await;
    let setting = format!(
        "{{ http = \"{}/backend?tenant=acme&api_key=k\" }}",
        upstream.origin()
    );
    let deployment = Deployment::builder()
        .upstream_setting(setting)
        .start()
        .await;
    for parameter in [
        "tenant=evil",
        "TENANT=evil",
        "tenant[]=evil",
        "tenant[0]=evil",
        "tenant[a][b]=evil",
        "tenant%5B%5D=evil",
        "tenant%5b0%5D=evil",
        "[tenant]=evil",
        "tenant.name=evil",
        "%74enant[]=evil",
        "+tenant[]=evil",
        "tenant%00=evil",
        "api.key=evil",
        "api+key=evil",
        "api%5Bkey=evil",
    ] {
        let target = format!("{}?a=1&{parameter}&b[]=2", Deployment::ENDPOINT);
        let response = deployment
            .send(Request::post(&target, INITIALIZE).bearer(&deployment.good_token()))
            .await;
        assert_eq!(response.status, 200, "{parameter}: {response:?}");
        assert_eq!(
            upstream.last().target,
            "/backend?tenant=acme&api_key=k&a=1&b[]=2",
            "{parameter}"
        );
    }
}
