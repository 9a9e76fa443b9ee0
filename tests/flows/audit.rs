//! The audit trail on standard output: decisions, sessions and usage.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, call_message};
use serde_json::{Value, json};

async fn audited_deployment() -> Deployment {
    Deployment::builder().tables("[audit]\ntarget = \"stdout\"").start().await
}

/// Stops the program and returns the records of its standard output.
async fn trail(deployment: Deployment) -> Vec<Value> {
    let finished = deployment.portcullis.stop().await;
    let record = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    finished.stdout.lines().map(record).collect()
}

fn with_event<'a>(trail: &'a [Value], event: &str) -> Vec<&'a Value> {
    trail.iter().filter(|record| record["event"] == event).collect()
}

/// J1, J4: each decision has one record with the request id, the principal, the resource, the method, the decision, its
/// reason and its time.
#[tokio::test]
async fn decisions() {
    let deployment = audited_deployment().await;
    let token = deployment.token().subject("alice").client_id("editor").sign();
    let unscoped = deployment.test_issuer.token().subject("bob").sign();
    let session = deployment.open_session(&token).await;
    let post = |body: String| Request::post("/mcp?key=canary", body);
    let tool = call_message(2, "tools/call", &json!({ "name": "add", "arguments": {} }));
    let mut requests = Vec::new();
    for (request, decision, code, status, subject) in [
        (post(tool.clone()).bearer(&token).session(&session), "allow", None, 200, Some("alice")),
        (post(tool.clone()).bearer(&token).session("unknown"), "deny", Some("session.unknown"), 400, Some("alice")),
        (post(INITIALIZE.to_owned()).bearer(&unscoped), "deny", Some("scope.insufficient"), 403, Some("bob")),
        (post(tool.clone()), "deny", Some("bearer.missing"), 401, None),
        (post(tool.clone()).bearer("canary"), "deny", Some("token.malformed"), 401, None),
        (Request::new("OPTIONS", "/mcp"), "deny", Some("bearer.missing"), 401, None),
        (Request::new("GET", Deployment::METADATA_PATH), "allow", None, 200, None),
        (
            Request::new("GET", "/mcp").header("Origin", "http://a.example"),
            "deny",
            Some("origin.not_allowed"),
            403,
            None,
        ),
    ] {
        let method = String::from_utf8(request.to_bytes()).unwrap().split(' ').next().unwrap().to_owned();
        let response = deployment.send(request).await;
        let id = response.header("x-request-id").expect("an id").to_owned();
        requests.push((id, method, response.status, decision, code, status, subject));
    }
    let trail = trail(deployment).await;
    assert!(!format!("{trail:?}").contains("canary"), "{trail:?}");

    for (id, method, actual_status, decision, code, status, subject) in requests {
        let matching: Vec<_> =
            with_event(&trail, "decision").into_iter().filter(|record| record["request.id"] == *id).collect();
        let [record] = matching[..] else { panic!("{decision} {code:?}: not one record: {matching:?}") };
        assert_eq!(actual_status, status, "{record}");
        assert_eq!(record["http.status"], status, "{record}");
        assert_eq!(record["decision"], decision, "{record}");
        assert_eq!(record["deny.code"].as_str(), code, "{record}");
        assert_eq!(record["http.method"], method, "{record}");
        assert_eq!(record["resource"], Deployment::RESOURCE, "{record}");
        assert_eq!(record["principal.subject"].as_str(), subject, "{record}");
        let issuer = subject.map(|_| issuer_name());
        assert_eq!(record["principal.issuer"].as_str(), issuer, "{record}");
        assert_eq!(record["principal.client"].as_str().is_some(), subject.is_some(), "{record}");
        assert!(subject != Some("alice") || record["principal.client"] == "editor", "{record}");
        assert_eq!(record["client.address"], "127.0.0.1", "{record}");
        let posts = record["http.method"] == "POST" && record["principal.subject"].is_string();
        assert_eq!(record["mcp.method"].is_string(), posts, "{record}");
        assert_eq!(record["mcp.tool"] == "add", record["mcp.method"] == "tools/call", "{record}");
        assert!(record["latency.us"].is_u64(), "{record}");
        assert!(record["timestamp"].as_str().unwrap().ends_with('Z'), "{record}");
    }
}

fn issuer_name() -> &'static str {
    "https://issuer.example"
}

/// J4: the start and the end of each session are recorded with its owner and a hash of its identifier.
#[tokio::test]
async fn sessions() {
    let deployment = audited_deployment().await;
    let token = deployment.token().subject("alice").client_id("editor").sign();
    let session = deployment.open_session(&token).await;
    let deleted = deployment.send(Request::new("DELETE", Deployment::ENDPOINT).bearer(&token).session(&session)).await;
    assert!((200..300).contains(&deleted.status), "{deleted:?}");

    let trail = trail(deployment).await;
    let ([opened], [ended]) = (&with_event(&trail, "session.opened")[..], &with_event(&trail, "session.ended")[..])
    else {
        panic!("not one of each: {trail:?}")
    };
    for record in [opened, ended] {
        assert_eq!(record["principal.subject"], "alice");
        assert_eq!(record["principal.client"], "editor");
        assert_eq!(record["principal.issuer"], issuer_name());
        assert_eq!(record["resource"], Deployment::RESOURCE);
        assert_eq!(record["session"].as_str().unwrap().len(), 16, "{record}");
    }
    assert_eq!(opened["session"], ended["session"]);
    assert_eq!(ended["session.reason"], "deleted");
    assert!(!format!("{trail:?}").contains(&session), "{trail:?}");
}

/// J4: the usage of each principal is counted, and recorded no later than the shutdown.
#[tokio::test]
async fn usage() {
    let deployment = audited_deployment().await;
    let alice = deployment.token().subject("alice").sign();
    let bob = deployment.test_issuer.token().subject("bob").sign();
    for (token, times) in [(&alice, 3), (&bob, 2)] {
        for _ in 0..times {
            deployment.try_token(token).await;
        }
    }
    deployment.send(Request::post(Deployment::ENDPOINT, INITIALIZE)).await.assert_unauthorized();
    let trail = trail(deployment).await;
    let used = |subject: Option<&str>| {
        let rows = with_event(&trail, "usage");
        let rows = rows.iter().filter(|row| row["principal.subject"].as_str() == subject);
        rows.fold((0, 0), |(requests, denied), row| {
            assert_eq!(row["resource"], Deployment::RESOURCE);
            (requests + row["usage.requests"].as_u64().unwrap(), denied + row["usage.denied"].as_u64().unwrap())
        })
    };
    assert_eq!(used(Some("alice")), (3, 0));
    assert_eq!(used(Some("bob")), (2, 2));
    assert_eq!(used(None), (1, 1));
    assert_eq!(trail.first().unwrap()["event"], "audit.started");
    assert_eq!(trail.last().unwrap()["event"], "audit.stopped");
    assert_eq!(trail.last().unwrap()["audit.lost"], 0);
}
