//! JSON-RPC batches, because rules check a single message.

use portcullis_scenarios::{Deployment, Request};

/// F4: in a session, any batch is rejected. Without a session, it gets the response for a missing
/// session.
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
        let response = deployment.send(post.clone().session(&session)).await;
        if body.ends_with(']') {
            response.assert_rpc_error(400, -32600);
            deployment.portcullis.assert_denied(&response, "message.batch").await;
        } else {
            assert_eq!(response.status, 400, "{response:?}");
        }
        deployment.send(post).await.assert_no_session();
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}
