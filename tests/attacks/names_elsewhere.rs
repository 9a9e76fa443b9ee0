//! Protected names in members other than `params.name` and `params.uri`.

use portcullis_scenarios::{Deployment, Request, call_message, modern_request};
use serde_json::{Value, json};

const RULES: &str = r#"
required_scopes = ["mcp:tools"]

[[resource.rule]]
method = "*"
name = "secret*"
scopes = ["mcp:admin"]

[[resource.rule]]
method = "*"
name = "file:///secret/*"
scopes = ["mcp:admin"]
"#;

fn modern(method: &str, params: &Value) -> Request {
    modern_request(Deployment::ENDPOINT, method, params)
}

fn legacy(session: &str, method: &str, params: &Value) -> Request {
    Request::post(Deployment::ENDPOINT, call_message(7, method, params)).session(session)
}

/// The parameters of `subscriptions/listen` for these resources.
fn listen_to(uris: &[&str]) -> Value {
    json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": uris } })
}

/// The parameters of `completion/complete` for this reference.
fn complete(reference: Value) -> Value {
    json!({ "ref": reference, "argument": { "name": "x", "value": "" } })
}

/// F12: a rule does not apply to other names, nor to members that are not names.
#[tokio::test]
async fn other_names_are_allowed() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let legacy = |method, params| legacy(&session, method, params);
    for (case, request) in [
        (
            "listen",
            modern(
                "subscriptions/listen",
                &listen_to(&["file:///public/x", "note:y"]),
            ),
        ),
        (
            "no subscriptions",
            modern("subscriptions/listen", &json!({ "notifications": {} })),
        ),
        (
            "a prompt",
            modern(
                "completion/complete",
                &complete(json!({ "type": "ref/prompt", "name": "greet" })),
            ),
        ),
        ("a task", legacy("tasks/get", &json!({ "taskId": "t-1" }))),
        (
            "an argument",
            legacy(
                "tools/call",
                &json!({ "name": "add", "arguments": { "name": "secret" } }),
            ),
        ),
    ] {
        let response = deployment.send(request.bearer(&token)).await;
        assert_eq!(response.status, 200, "{case}: {response:?}");
    }
}

/// F12: a rule for a name applies to every member that can have the name, even together with other
/// names.
#[tokio::test]
async fn in_any_listed_member() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let legacy = |method, params| legacy(&session, method, params);
    let prompt = json!({ "type": "ref/prompt", "name": "secret" });
    let template = json!({ "type": "ref/resource", "uri": "file:///secret/{x}" });
    let prompt_and_uri = json!({ "type": "ref/prompt", "uri": "file:///secret/x", "name": "a" });
    let related = json!({ "name": "add", "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "secret-1" } } });
    let before = deployment.upstream.count();
    let mut denied = Vec::new();
    for (case, request) in [
        (
            "the only subscription",
            modern("subscriptions/listen", &listen_to(&["file:///secret/x"])),
        ),
        (
            "the last subscription",
            modern(
                "subscriptions/listen",
                &listen_to(&["note:a", "note:b", "file:///secret/x"]),
            ),
        ),
        (
            "an alias",
            modern(
                "subscriptions/listen",
                &listen_to(&["note:a", "file:///%73ecret/x"]),
            ),
        ),
        ("a prompt", modern("completion/complete", &complete(prompt))),
        (
            "a template",
            legacy("completion/complete", &complete(template)),
        ),
        (
            "a prompt and a URI",
            legacy("completion/complete", &complete(prompt_and_uri)),
        ),
        (
            "a task",
            legacy("tasks/get", &json!({ "taskId": "secret-1" })),
        ),
        (
            "a task's result",
            legacy("tasks/result", &json!({ "taskId": "secret-1" })),
        ),
        (
            "a task's cancellation",
            modern("tasks/cancel", &json!({ "taskId": "secret-1" })),
        ),
        (
            "a task's input",
            modern(
                "tasks/update",
                &json!({ "taskId": "secret-1", "inputResponses": {} }),
            ),
        ),
        ("a related task", legacy("tools/call", &related)),
        (
            "a subscription of another revision",
            modern("resources/subscribe", &json!({ "uri": "file:///secret/x" })),
        ),
    ] {
        let response = deployment.send(request.bearer(&token)).await;
        assert_eq!(response.status, 403, "{case}: {response:?}");
        denied.push((response, "scope.insufficient"));
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
    deployment.portcullis.assert_all_denied(&denied).await;
}

/// F12: a message with more than 1,000 names is rejected.
#[tokio::test]
async fn among_too_many_names() {
    let deployment = Deployment::builder().resource(RULES).start().await;
    let uris: Vec<String> = (0..=1000).map(|number| format!("note:{number}")).collect();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let request =
        modern("subscriptions/listen", &listen_to(&uris)).bearer(&deployment.good_token());
    let response = deployment.send(request).await;
    response.assert_rpc_error(400, -32602);
    assert_eq!(response.json()["id"], 1, "{response:?}");
    assert_eq!(
        deployment.upstream.count(),
        0,
        "the request reached the upstream"
    );
    deployment
        .portcullis
        .assert_all_denied(&[(response, "message.too_many_names")])
        .await;
}

/// F12: a method or name of more than 8,192 bytes is rejected with the request's id, in every
/// member and without rules.
#[tokio::test]
async fn with_long_names() {
    const MAX_BYTES: usize = 8192;
    let without_rules = Deployment::start().await;
    for deployment in [
        Deployment::builder().resource(RULES).start().await,
        without_rules,
    ] {
        let token = deployment.good_token();
        let session = deployment.open_session(&token).await;
        let long = "a".repeat(MAX_BYTES + 1);
        let accepted = legacy(
            &session,
            "tools/call",
            &json!({ "name": long[1..], "arguments": {} }),
        )
        .bearer(&token);
        assert_eq!(deployment.send(accepted).await.status, 200);
        let before = deployment.upstream.count();
        let mut denied = Vec::new();
        for (method, params) in [
            ("tools/call", json!({ "name": long, "arguments": {} })),
            (
                "tools/call",
                json!({ "name": "a".repeat(4_000_000), "arguments": {} }),
            ),
            ("prompts/get", json!({ "name": long })),
            ("resources/read", json!({ "uri": long })),
            ("tasks/get", json!({ "taskId": long })),
            (
                "completion/complete",
                complete(json!({ "type": "ref/prompt", "name": long })),
            ),
        ] {
            let response = deployment
                .send(legacy(&session, method, &params).bearer(&token))
                .await;
            response.assert_rpc_error(400, -32602);
            assert_eq!(response.json()["id"], 7, "{response:?}");
            denied.push((response, "message.name_too_long"));
        }
        let listen = deployment
            .send(modern("subscriptions/listen", &listen_to(&["note:a", &long])).bearer(&token))
            .await;
        listen.assert_rpc_error(400, -32602);
        denied.push((listen, "message.name_too_long"));
        let method = deployment
            .send(legacy(&session, &long, &json!({})).bearer(&token))
            .await;
        method.assert_rpc_error(400, -32600);
        denied.push((method, "message.method_too_long"));
        assert_eq!(
            deployment.upstream.count(),
            before,
            "a request reached the upstream"
        );
        deployment.portcullis.assert_all_denied(&denied).await;
    }
}

/// J4, F12: the audit trail has the names that were checked, without their queries.
#[tokio::test]
async fn in_the_audit_trail() {
    let deployment = Deployment::builder()
        .resource(RULES)
        .tables("[audit]\ntarget = \"stdout\"")
        .start()
        .await;
    let token = deployment.good_token();
    let params = json!({ "notifications": { "resourceSubscriptions": ["note:a", "file:///secret/x?canary"] } });
    assert_eq!(
        deployment
            .send(modern("subscriptions/listen", &params).bearer(&token))
            .await
            .status,
        403
    );
    let finished = deployment.portcullis.stop().await;
    let mut records = finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let record = records
        .find(|record| record["mcp.method"] == "subscriptions/listen")
        .unwrap();
    assert_eq!(record["decision"], "deny");
    assert_eq!(record["mcp.target"], "note:a");
    assert_eq!(record["mcp.further_targets"], json!(["file:///secret/x"]));
    assert_eq!(record["mcp.target_count"], 2);
    assert!(!finished.stdout.contains("canary"));
}
