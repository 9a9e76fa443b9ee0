//! HTTP/2 by prior knowledge: sessions, authority and metadata as with HTTP/1.1.

use portcullis_scenarios::{Deployment, Http2, INITIALIZE, call_message};
use serde_json::json;

/// E2, E4: a session over HTTP/2, all its requests on one connection.
#[tokio::test]
async fn a_session() {
    let deployment = Deployment::start().await;
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let response = http2
        .send(Http2::post(Deployment::ENDPOINT), INITIALIZE)
        .await
        .unwrap();
    assert_eq!(response.assert_unauthorized(), None);

    let bearer = format!("Bearer {}", deployment.good_token());
    let response = http2
        .send(
            Http2::post(Deployment::ENDPOINT).header("authorization", &bearer),
            INITIALIZE,
        )
        .await
        .unwrap();
    assert_eq!(response.status, 200, "{response:?}");

    let session = response.header("mcp-session-id").unwrap().to_owned();
    let in_session = |method: &str| {
        Http2::request(method, Deployment::ENDPOINT)
            .header("authorization", &bearer)
            .header("content-type", "application/json")
            .header("mcp-session-id", &session)
    };
    let response = http2
        .send(
            in_session("POST"),
            call_message(2, "echo", &json!({ "x": 1 })),
        )
        .await
        .unwrap();
    assert_eq!(response.json()["result"], json!({ "x": 1 }), "{response:?}");

    let response = http2.send(in_session("GET"), "").await.unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.text().as_str(), ": open\n\n", "{response:?}");
    assert_eq!(
        http2.send(in_session("DELETE"), "").await.unwrap().status,
        200
    );

    http2
        .send(in_session("POST"), call_message(3, "echo", &json!({})))
        .await
        .unwrap()
        .assert_no_session();
    assert!(
        deployment
            .upstream
            .recorded()
            .iter()
            .all(|request| request.header("via") == Some("2.0 portcullis"))
    );
}

/// F3: `Host` and `:authority` must agree, and both are checked.
#[tokio::test]
async fn host_and_authority() {
    let deployment = Deployment::start().await;
    let bearer = format!("Bearer {}", deployment.good_token());
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    for (authority, host, status) in [
        ("127.0.0.1", None, 200),
        ("127.0.0.1:3000", Some("127.0.0.1:3000"), 200),
        ("localhost", Some("localhost"), 200),
        ("127.0.0.1", Some("localhost"), 403),
        ("127.0.0.1", Some("attacker.example"), 403),
        ("attacker.example", Some("127.0.0.1"), 403),
        ("attacker.example", Some("attacker.example"), 403),
        ("attacker.example", None, 403),
    ] {
        let request = http::Request::builder()
            .method("POST")
            .uri(format!("http://{authority}{}", Deployment::ENDPOINT))
            .header("content-type", "application/json")
            .header("authorization", &bearer);
        let request = host
            .iter()
            .fold(request, |request, host| request.header("host", *host));
        let before = deployment.upstream.count();
        let response = http2.send(request, INITIALIZE).await.unwrap();
        assert_eq!(
            response.status, status,
            "{authority}, {host:?}: {response:?}"
        );
        assert_eq!(
            deployment.upstream.count() - before,
            usize::from(status == 200),
            "{authority}, {host:?}"
        );
    }
}

/// A3, A4: the metadata over HTTP/2, and 404 for other paths.
#[tokio::test]
async fn metadata() {
    let deployment = Deployment::start().await;
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let response = http2
        .send(Http2::request("GET", Deployment::METADATA_PATH), "")
        .await
        .unwrap();
    assert_eq!(
        response.json()["resource"],
        Deployment::RESOURCE,
        "{response:?}"
    );
    let response = http2
        .send(Http2::request("HEAD", Deployment::METADATA_PATH), "")
        .await
        .unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.body.len(), 0, "{response:?}");
    let response = http2.send(Http2::request("GET", "/MCP"), "").await.unwrap();
    assert_eq!(response.status, 404, "{response:?}");
}
