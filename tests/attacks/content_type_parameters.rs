//! Content-type parameters that make a parser use another charset than the checked one (RFC 2231).

use portcullis_scenarios::{Deployment, Request, call_message};
use serde_json::json;

/// F11: Python's `email` reads UTF-7 from a parameter continuation and then decodes the name
/// `admin_wipe`. The only accepted parameter is one `charset` of UTF-8.
#[tokio::test]
async fn a_charset_in_continuations() {
    let rules =
        "[[resource.rule]]\nmethod = \"tools/call\"\nname = \"admin_*\"\nscopes = [\"mcp:admin\"]";
    let deployment = Deployment::builder().resource(rules).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let body = call_message(
        1,
        "tools/call",
        &json!({ "name": "+AGE-dmin_wipe", "arguments": {} }),
    );
    let post = |content_type: &str| {
        let request =
            Request::new("POST", Deployment::ENDPOINT).header("Content-Type", content_type);
        request
            .header("Accept", "application/json, text/event-stream")
            .bearer(&token)
            .session(&session)
            .body(&*body)
    };
    for content_type in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=\"UTF-8\"",
    ] {
        assert_eq!(
            deployment.send(post(content_type)).await.status,
            200,
            "{content_type}"
        );
    }
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for content_type in [
        "application/json; charset*0=utf-7",
        "application/json; charset*0=utf; charset*1=-7",
        "application/json; charset*=us-ascii''utf-7",
        "application/json; charset*0*=utf-7",
        "application/json; charset=utf-8; charset*0=utf-7",
        "application/json; charset=utf-8; charset=utf-8",
        "application/json; charset=utf-7",
        "application/json; charset = utf-7",
        "application/json; x=y",
        "application/json; charset=\"utf-8\\\"; x=\"",
    ] {
        let response = deployment.send(post(content_type)).await;
        response.assert_rpc_error(415, -32600);
        denied.push((response, "body.content_type"));
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}
