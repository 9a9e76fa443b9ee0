//! JSON-RPC batches, because rules check a single message.

use portcullis_scenarios::{Deployment, Request};

/// F4: a batch is rejected in a session, whatever it contains. Without a session, it is a message without a session.
#[tokio::test]
async fn batches_are_rejected() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let initialize = portcullis_scenarios::INITIALIZE;
    for body in [
        "[]".to_owned(),
        " \n\t[]".to_owned(),
        format!("[{initialize}]"),
        format!("[{initialize},{initialize}]"),
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]"#.to_owned(),
        "[1,2".to_owned(),
    ] {
        let post = Request::post(Deployment::ENDPOINT, body.as_str()).bearer(&token);
        let answer = deployment.send(post.clone().session(&session)).await;
        if body.ends_with(']') {
            answer.assert_rpc_error(400, -32600);
            deployment.portcullis.assert_denied(&answer, "message.batch").await;
        } else {
            assert_eq!(answer.status, 400, "{answer:?}");
        }
        deployment.send(post).await.assert_no_session();
    }
    assert_eq!(deployment.upstream.count(), before, "a request reached the upstream");
}
