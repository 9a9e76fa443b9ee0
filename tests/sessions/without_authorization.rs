//! Without authorization, sessions have no owner, and a warning is logged.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, call_message, modern_request};
use serde_json::json;

/// F7: sessions have no owner and are found by their identifier only. Tokens are ignored, and no
/// metadata is served.
#[tokio::test]
async fn sessions_without_owners() {
    let deployment = Deployment::builder()
        .resource("auth = \"none\"")
        .start()
        .await;
    let opened = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = opened.header("mcp-session-id").unwrap();
    let post = || Request::post(Deployment::ENDPOINT, call_message(2, "echo", &json!({})));
    for request in [
        post(),
        post().bearer("not.a.token"),
        post().header("Authorization", "Basic x"),
    ] {
        assert_eq!(deployment.send(request.session(session)).await.status, 200);
    }
    deployment.send(post()).await.assert_no_session();

    deployment
        .send(post().session("unknown"))
        .await
        .assert_no_session();
    let response = deployment
        .send(Request::new("GET", Deployment::ENDPOINT))
        .await;
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(
        response.text().as_str(),
        "Invalid or missing session ID",
        "{response:?}"
    );

    let modern = modern_request(Deployment::ENDPOINT, "tools/list", &json!({}));
    assert_eq!(deployment.send(modern).await.status, 200);
    let response = deployment
        .send(Request::new("DELETE", Deployment::ENDPOINT).session(session))
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    deployment
        .send(post().session(session))
        .await
        .assert_no_session();

    for path in [
        Deployment::METADATA_PATH,
        "/.well-known/oauth-protected-resource",
    ] {
        assert_eq!(
            deployment.send(Request::new("GET", path)).await.status,
            404,
            "{path}"
        );
    }
    let response = deployment
        .send(Request::post("/mcp?access_token=x", INITIALIZE))
        .await;
    assert_eq!(
        response.status, 400,
        "a token in the query is never forwarded: {response:?}"
    );
}

/// F7: a warning is logged at startup.
#[tokio::test]
async fn a_warning_at_startup() {
    let deployment = Deployment::builder()
        .resource("auth = \"none\"")
        .start()
        .await;
    let line = deployment
        .portcullis
        .logged("auth = \\\"none\\\"", |line| line["level"] == "WARN")
        .await;
    assert!(line["message"].as_str().unwrap().contains("/mcp"), "{line}");
}
