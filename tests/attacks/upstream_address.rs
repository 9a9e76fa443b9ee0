//! Disclosure of the upstream's address, and client parameters that conflict with the configured address.

use portcullis_scenarios::{Deployment, INITIALIZE, RawUpstream, Request, Upstream};

/// L10: a redirect of the upstream becomes 502. Only the log has the target, without secrets, as the address to
/// configure.
#[tokio::test]
async fn redirects() {
    for (status, location, logged) in [
        (307, "/backend/", "/backend/;"),
        (308, "http://10.1.2.3:8080/mcp?key=canary#canary", "http://10.1.2.3:8080/mcp;"),
        (301, "https://user:canary@internal.example/mcp", "https://internal.example/mcp;"),
        (302, "//internal.example/login", "http://internal.example/login;"),
        (303, "\u{e9}\u{ff}", "an invalid address;"),
    ] {
        let answer = format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        let raw = RawUpstream::start(answer).await;
        let deployment = Deployment::builder().upstream_setting(raw.setting()).start().await;
        let answer = deployment.try_token(&deployment.good_token()).await;
        answer.assert_rpc_error(502, -32603);
        assert_eq!(answer.count("location"), 0, "{answer:?}");
        for internal in ["10.1.2.3", "internal", "canary", "backend"] {
            assert!(!format!("{answer:?}").contains(internal), "{answer:?}");
        }
        deployment.portcullis.assert_denied(&answer, "upstream.redirect").await;
        let line = deployment.portcullis.logged_line(&["the upstream redirects to", logged, "`upstream`"]).await;
        assert!(!line.contains("canary"), "{line}");
    }
}

/// L10: no other response discloses an address of the upstream.
#[tokio::test]
async fn addresses_in_headers() {
    let script = |_: &portcullis_scenarios::Recorded| {
        let headers = [
            ("content-type", "application/json"),
            ("location", "http://10.1.2.3/created"),
            ("content-location", "http://10.1.2.3/created"),
            ("refresh", "0; url=http://10.1.2.3/"),
            ("alt-svc", "h2=\"10.1.2.3:443\""),
            ("x-kept", "yes"),
        ];
        Some(Upstream::answer(201, &headers, "{}"))
    };
    let deployment = Deployment::builder().upstream(Upstream::scripted(script).await).start().await;
    let answer = deployment.try_token(&deployment.good_token()).await;
    assert_eq!((answer.status, answer.header("x-kept")), (201, Some("yes")), "{answer:?}");
    assert!(!format!("{answer:?}").contains("10.1.2.3"), "{answer:?}");
}

/// L1: a parameter that is fixed in `upstream` cannot be set by a client, in the notation of any common server.
#[tokio::test]
async fn fixed_parameters() {
    let upstream = Upstream::start().await;
    let setting = format!("{{ http = \"{}/backend?tenant=acme&api_key=k\" }}", upstream.origin());
    let deployment = Deployment::builder().upstream_setting(setting).start().await;
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
        let answer = deployment.send(Request::post(&target, INITIALIZE).bearer(&deployment.good_token())).await;
        assert_eq!(answer.status, 200, "{parameter}: {answer:?}");
        assert_eq!(upstream.last().target, "/backend?tenant=acme&api_key=k&a=1&b[]=2", "{parameter}");
    }
}
