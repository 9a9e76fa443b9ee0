//! Deeply nested JSON, which exhausts the stack or a core.

use portcullis_scenarios::{Deployment, Request};

fn nested(depth: usize, open: &str, close: &str) -> String {
    let inner = format!("{}1{}", open.repeat(depth), close.repeat(depth));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{inner}}}}}"#)
}

/// F4: arrays and objects are limited to 64 levels, and 100,000 levels are rejected for the same
/// reason as 65.
#[tokio::test]
async fn in_the_body() {
    let deployment = Deployment::start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let send = async |body: String| {
        deployment
            .send(
                Request::post(Deployment::ENDPOINT, body)
                    .bearer(&token)
                    .session(&session),
            )
            .await
    };

    // The message itself has two levels.
    assert_eq!(
        send(nested(62, "[", "]")).await.status,
        200,
        "64 levels are allowed"
    );
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for (depth, open, close) in [
        (63, "[", "]"),
        (63, "{\"a\":", "}"),
        (100, "[", "]"),
        (100_000, "[", "]"),
        (100_000, "{\"a\":", "}"),
    ] {
        let response = send(nested(depth, open, close)).await;
        response.assert_rpc_error(400, -32600);
        denied.push((response, "message.too_deep"));
    }
    let response = send("[".repeat(1 << 20)).await;
    assert_eq!(response.status, 400, "{response:?}");

    let response = send("{\"a\":".repeat(1 << 18)).await;
    assert_eq!(response.status, 400, "{response:?}");
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// C9: a deeply nested token is verified or rejected and does not stop the program.
#[tokio::test]
async fn in_the_token() {
    let deployment = Deployment::start().await;
    for depth in [200, 4000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let header = format!(r#"{{"alg":"RS256","kid":"rs256-0","x":{deep}}}"#);
        deployment
            .assert_accepted(
                "unknown header members are ignored",
                &deployment.token().raw_header(header).sign(),
            )
            .await;
        let payload = format!(r#"{{"iss":"https://issuer.example","x":{deep}}}"#);
        let response = deployment
            .try_token(&deployment.token().raw_payload(payload).sign())
            .await;
        assert_eq!(
            response.assert_unauthorized(),
            Some("invalid_token"),
            "payload, {depth}: {response:?}"
        );
    }
    deployment
        .assert_accepted("the server continues", &deployment.good_token())
        .await;
}
