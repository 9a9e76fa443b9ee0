//! Members that a parser which ignores letter case confuses with a checked member.

use portcullis_scenarios::{Deployment, Request, call_message};

/// F13: a member whose name equals a checked one after ASCII or Unicode case folding is rejected
/// with the request's id, and so is a duplicate.
#[tokio::test]
async fn beside_the_checked_ones() {
    let rules = "[[resource.rule]]\nmethod = \"*\"\nname = \"secret*\"\nscopes = [\"mcp:admin\"]";
    let deployment = Deployment::builder().resource(rules).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let before = deployment.upstream.count();
    let message = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":"7","method":"{method}","params":{params}}}"#)
    };
    let mut denied = Vec::new();
    for (method, params, code) in [
        (
            "tasks/get",
            "{\"taskId\":\"a\",\"tas\u{212a}Id\":\"secret\"}",
            "message.look_alike_member",
        ),
        (
            "tasks/get",
            r#"{"taskId":"a","ta\u017fkid":"secret"}"#,
            "message.look_alike_member",
        ),
        (
            "tasks/get",
            r#"{"taskId":"a","taskId":"secret"}"#,
            "message.duplicate_member",
        ),
        (
            "completion/complete",
            r#"{"ref":{"name":"a"},"REF":{"name":"secret"}}"#,
            "message.look_alike_member",
        ),
        (
            "completion/complete",
            r#"{"ref":{"name":"a","Name":"secret"}}"#,
            "message.look_alike_member",
        ),
        (
            "completion/complete",
            r#"{"ref":{"name":"a","n\u0061me":"secret"}}"#,
            "message.duplicate_member",
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSub\u017fcriptions":["secret:x"]}}"#,
            "message.look_alike_member",
        ),
        (
            "subscriptions/listen",
            r#"{"notification\u017f":{"resourceSubscriptions":["secret:x"]}}"#,
            "message.look_alike_member",
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":[],"resourceSubscriptions":["secret:x"]}}"#,
            "message.duplicate_member",
        ),
        (
            "acme/x",
            r#"{"_meta":{"io.modelcontextprotocol/related-tas\u212a":{"taskId":"secret"}}}"#,
            "message.look_alike_member",
        ),
    ] {
        let response = deployment
            .send(
                Request::post(Deployment::ENDPOINT, message(method, params))
                    .bearer(&token)
                    .session(&session),
            )
            .await;
        response.assert_rpc_error(400, -32600);
        assert_eq!(response.json()["id"], "7", "{params}: {response:?}");
        denied.push((response, code));
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;

    let arguments =
        serde_json::json!({ "name": "add", "arguments": { "Name": 1, "tas\u{212a}Id": 2 } });
    let request = Request::post(
        Deployment::ENDPOINT,
        call_message(1, "tools/call", &arguments),
    );
    assert_eq!(
        deployment
            .send(request.bearer(&token).session(&session))
            .await
            .status,
        200
    );
}
