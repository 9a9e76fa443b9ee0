//! Several messages in one body: rules judge one.

use portcullis_scenarios::{Request, Site};

/// F4: a batch is refused in a session, whatever is in it; without a session it is a message without one.
#[tokio::test]
async fn batches_are_refused() {
    let site = Site::start().await;
    let token = site.good_token();
    let session = site.open_session(&token).await;
    let before = site.upstream.count();
    let initialize = portcullis_scenarios::INITIALIZE;
    for body in [
        "[]".to_owned(),
        " \n\t[]".to_owned(),
        format!("[{initialize}]"),
        format!("[{initialize},{initialize}]"),
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]"#.to_owned(),
        "[1,2".to_owned(),
    ] {
        let post = Request::post(Site::ENDPOINT, body.as_str()).bearer(&token);
        let answer = site.send(post.clone().session(&session)).await;
        if body.ends_with(']') {
            answer.assert_rpc_error(400, -32600);
            site.portcullis.assert_denied(&answer, "message.batch").await;
        } else {
            assert_eq!(answer.status, 400, "{answer:?}");
        }
        site.send(post).await.assert_no_session();
    }
    assert_eq!(site.upstream.count(), before, "a request reached the upstream");
}
