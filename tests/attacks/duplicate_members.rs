//! Duplicate members of a message, of which two parsers could use different ones.

use portcullis_scenarios::{Deployment, INITIALIZE, Request};

/// F4, F5: duplicate members of a message are rejected, and so are members that differ only in
/// letter case.
#[tokio::test]
async fn in_the_message() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    for (body, code) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#,
            "message.duplicate_member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#,
            "message.duplicate_member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","\u006dethod":"x"}"#,
            "message.duplicate_member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            "message.duplicate_member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#,
            "message.duplicate_member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}"#,
            "message.look_alike_member",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","NAME":"b"}}"#,
            "message.look_alike_member",
        ),
    ] {
        let response = deployment
            .send(
                Request::post(Deployment::ENDPOINT, body)
                    .bearer(&token)
                    .session(&session),
            )
            .await;
        response.assert_rpc_error(400, -32600);
        deployment.portcullis.assert_denied(&response, code).await;
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );

    let twice = Request::post(Deployment::ENDPOINT, INITIALIZE)
        .bearer(&token)
        .session(&session)
        .session(&session);
    let response = deployment.send(twice).await;
    response.assert_no_session();
    deployment
        .portcullis
        .assert_denied(&response, "session.repeated")
        .await;
}
