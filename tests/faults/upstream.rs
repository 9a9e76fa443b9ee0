//! Upstreams that are unavailable or send invalid responses.

use portcullis_scenarios::{Deployment, INITIALIZE, RawUpstream, Request, ReservedPort};

/// Asserts that a request gets a generic 502, and that the log has this reason.
async fn assert_bad_gateway(deployment: &Deployment, code: &str) {
    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&deployment.good_token()))
        .await;
    response.assert_rpc_error(502, -32603);
    assert_eq!(
        response.text(),
        r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"The server behind this gateway cannot be used now"},"id":1}"#
    );
    assert_eq!(response.header("retry-after"), Some("5"), "{response:?}");
    assert_eq!(response.count("mcp-session-id"), 0, "{response:?}");
    assert_eq!(response.count("www-authenticate"), 0, "{response:?}");
    deployment.portcullis.assert_denied(&response, code).await;
}

/// L1: with an unavailable upstream the client gets 502, over TCP and Unix sockets. Tokens are
/// verified first.
#[tokio::test]
async fn unavailable() {
    let closed = ReservedPort::new();
    let http = format!("{{ http = \"http://{}/mcp\" }}", closed.address());
    for setting in [http, "{ unix = \"/nowhere/socket\" }".to_owned()] {
        let deployment = Deployment::builder()
            .upstream_setting(setting)
            .start()
            .await;
        assert_bad_gateway(&deployment, "upstream.unreachable").await;
        assert_eq!(
            deployment
                .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
                .await
                .assert_unauthorized(),
            None
        );
        assert_eq!(
            deployment
                .send(Request::new("GET", Deployment::METADATA_PATH))
                .await
                .status,
            200
        );
        assert_eq!(
            deployment.send(Request::new("GET", "/readyz")).await.status,
            200,
            "readiness is about issuers"
        );
    }
}

/// L1: if the upstream closes the connection without a response, or does not send HTTP, the client
/// gets 502.
#[tokio::test]
async fn no_valid_response() {
    for response in [
        "",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "<html></html>",
    ] {
        let raw = RawUpstream::start(response).await;
        let deployment = Deployment::builder()
            .upstream_setting(raw.setting())
            .start()
            .await;
        assert_bad_gateway(&deployment, "upstream.no_answer").await;
    }
}
