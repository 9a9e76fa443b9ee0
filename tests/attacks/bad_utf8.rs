//! Bytes that are not UTF-8, which two parsers could decode differently.

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

/// F4: a body that is not UTF-8 is not JSON.
#[tokio::test]
async fn in_the_body() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let message = |bytes: &[u8]| {
        [
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":""#,
            bytes,
            br#""}}"#,
        ]
        .concat()
    };
    for bytes in [
        &b"\xff"[..],
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc3",
        b"\x80",
    ] {
        let response = deployment
            .send(
                Request::post(Deployment::ENDPOINT, message(bytes))
                    .bearer(&token)
                    .session(&session),
            )
            .await;
        response.assert_rpc_error(400, -32700);
        deployment
            .portcullis
            .assert_denied(&response, "message.not_utf8")
            .await;
        deployment
            .send(Request::post(Deployment::ENDPOINT, message(bytes)).bearer(&token))
            .await
            .assert_no_session();
    }
    let utf16: Vec<u8> = INITIALIZE
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let with_bom = [b"\xef\xbb\xbf", INITIALIZE.as_bytes()].concat();
    for body in [utf16, with_bom] {
        let response = deployment
            .send(
                Request::post(Deployment::ENDPOINT, body)
                    .bearer(&token)
                    .session(&session),
            )
            .await;
        response.assert_rpc_error(400, -32700);
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}

/// E1, F4: non-ASCII values of relevant headers are rejected, and the connection stays open.
#[tokio::test]
async fn in_headers() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let post = || Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token);
    let response = deployment
        .send(post().header("Mcp-Session-Id", b"\xff\xfe"))
        .await;
    response.assert_no_session();

    let response = deployment
        .send(
            Request::post(Deployment::ENDPOINT, INITIALIZE)
                .header("Authorization", b"Bearer \xff\xfe"),
        )
        .await;
    assert_eq!(response.assert_unauthorized(), Some("invalid_request"));

    let response = deployment
        .send(
            Request::new("POST", Deployment::ENDPOINT)
                .bearer(&token)
                .header("Content-Type", b"application/json\xff")
                .body(INITIALIZE),
        )
        .await;
    assert_eq!(response.status, 415, "{response:?}");

    let response = deployment
        .send(post().header("Origin", b"http://localhost\xff"))
        .await;
    assert_eq!(response.status, 403, "{response:?}");
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );
}
