//! The audit trail on standard output: decisions, sessions and usage.

use portcullis_scenarios::{Deployment, INITIALIZE, Request, call_message};
use serde_json::{Value, json};

const ISSUER: &str = "https://issuer.example";

/// Starts a deployment whose trail goes to standard output.
async fn audited_deployment() -> Deployment {
    Deployment::builder()
        .tables("[audit]\ntarget = \"stdout\"")
        .start()
        .await
}

/// Stops the program and returns the records of its standard output.
async fn trail(deployment: Deployment) -> Vec<Value> {
    let finished = deployment.portcullis.stop().await;
    let record =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    finished.stdout.lines().map(record).collect()
}

/// Returns the records of this event.
fn with_event<'a>(trail: &'a [Value], event: &str) -> Vec<&'a Value> {
    trail
        .iter()
        .filter(|record| record["event"] == event)
        .collect()
}

/// A request, and what its record must contain.
struct Case {
    request: Request,
    status: u16,
    /// The reason of a denial; `None` if the request is allowed.
    code: Option<&'static str>,
    subject: Option<&'static str>,
}

impl Case {
    fn allowed(request: Request, subject: Option<&'static str>) -> Self {
        Self {
            request,
            status: 200,
            code: None,
            subject,
        }
    }

    fn denied(
        request: Request,
        status: u16,
        code: &'static str,
        subject: Option<&'static str>,
    ) -> Self {
        Self {
            request,
            status,
            code: Some(code),
            subject,
        }
    }
}

/// J1, J4: each decision has one record with the request id, the principal, the resource, the
/// method, the decision, its reason and its time.
#[tokio::test]
async fn decisions() {
    let deployment = audited_deployment().await;
    let token = deployment
        .token()
        .subject("alice")
        .client_id("editor")
        .sign();
    let unscoped = deployment.test_issuer.token().subject("bob").sign();
    let session = deployment.open_session(&token).await;
    let post = |body: String| Request::post("/mcp?key=canary", body);
    let tool = || {
        post(call_message(
            2,
            "tools/call",
            &json!({ "name": "add", "arguments": {} }),
        ))
    };
    let other_origin = Request::new("GET", "/mcp").header("Origin", "http://a.example");
    let mut sent = Vec::new();
    for case in [
        Case::allowed(tool().bearer(&token).session(&session), Some("alice")),
        Case::denied(
            tool().bearer(&token).session("unknown"),
            400,
            "session.unknown",
            Some("alice"),
        ),
        Case::denied(
            post(INITIALIZE.to_owned()).bearer(&unscoped),
            403,
            "scope.insufficient",
            Some("bob"),
        ),
        Case::denied(tool(), 401, "bearer.missing", None),
        Case::denied(tool().bearer("canary"), 401, "token.malformed", None),
        Case::denied(Request::new("OPTIONS", "/mcp"), 401, "bearer.missing", None),
        Case::allowed(Request::new("GET", Deployment::METADATA_PATH), None),
        Case::denied(other_origin, 403, "origin.not_allowed", None),
    ] {
        let response = deployment.send(case.request.clone()).await;
        assert_eq!(response.status, case.status, "{response:?}");
        let id = response.header("x-request-id").expect("an id").to_owned();
        sent.push((id, case));
    }
    let trail = trail(deployment).await;
    assert!(!format!("{trail:?}").contains("canary"), "{trail:?}");

    let decisions = with_event(&trail, "decision");
    for (id, case) in sent {
        let matching: Vec<_> = decisions
            .iter()
            .filter(|record| record["request.id"] == *id)
            .collect();
        let [record] = matching[..] else {
            panic!("{:?}: not one record: {matching:?}", case.code)
        };
        assert_decision(record, &case);
    }
}

/// Asserts that a record describes this request.
fn assert_decision(record: &Value, case: &Case) {
    let head = String::from_utf8(case.request.to_bytes()).unwrap();
    let method = head.split(' ').next().unwrap();
    assert_eq!(record["http.method"], method, "{record}");
    assert_eq!(record["http.status"], case.status, "{record}");
    assert_eq!(
        record["decision"],
        if case.code.is_some() { "deny" } else { "allow" },
        "{record}"
    );
    assert_eq!(record["deny.code"].as_str(), case.code, "{record}");
    assert_eq!(record["resource"], Deployment::RESOURCE, "{record}");
    assert_eq!(record["client.address"], "127.0.0.1", "{record}");
    assert!(record["latency.us"].is_u64(), "{record}");
    assert!(
        record["timestamp"].as_str().unwrap().ends_with('Z'),
        "{record}"
    );

    assert_eq!(
        record["principal.subject"].as_str(),
        case.subject,
        "{record}"
    );
    assert_eq!(
        record["principal.issuer"].as_str(),
        case.subject.map(|_| ISSUER),
        "{record}"
    );
    assert_eq!(
        record["principal.client"].is_string(),
        case.subject.is_some(),
        "{record}"
    );
    if case.subject == Some("alice") {
        assert_eq!(record["principal.client"], "editor", "{record}");
    }

    let has_message = method == "POST" && case.subject.is_some();
    assert_eq!(record["mcp.method"].is_string(), has_message, "{record}");
    assert_eq!(
        record["mcp.tool"] == "add",
        record["mcp.method"] == "tools/call",
        "{record}"
    );
}

/// J4: the start and the end of each session are recorded with its owner and a hash of its
/// identifier.
#[tokio::test]
async fn sessions() {
    let deployment = audited_deployment().await;
    let token = deployment
        .token()
        .subject("alice")
        .client_id("editor")
        .sign();
    let session = deployment.open_session(&token).await;
    let deleted = deployment.delete_session(&token, &session).await;
    assert!((200..300).contains(&deleted.status), "{deleted:?}");

    let trail = trail(deployment).await;
    let ([opened], [ended]) = (
        &with_event(&trail, "session.opened")[..],
        &with_event(&trail, "session.ended")[..],
    ) else {
        panic!("not one of each: {trail:?}")
    };
    for record in [opened, ended] {
        assert_eq!(record["principal.subject"], "alice");
        assert_eq!(record["principal.client"], "editor");
        assert_eq!(record["principal.issuer"], ISSUER);
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
    deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await
        .assert_unauthorized();
    let trail = trail(deployment).await;
    let used = |subject: Option<&str>| {
        let rows = with_event(&trail, "usage");
        let rows = rows
            .iter()
            .filter(|row| row["principal.subject"].as_str() == subject);
        rows.fold((0, 0), |(requests, denied), row| {
            assert_eq!(row["resource"], Deployment::RESOURCE);
            (
                requests + row["usage.requests"].as_u64().unwrap(),
                denied + row["usage.denied"].as_u64().unwrap(),
            )
        })
    };
    assert_eq!(used(Some("alice")), (3, 0));
    assert_eq!(used(Some("bob")), (2, 2));
    assert_eq!(used(None), (1, 1));
    assert_eq!(trail.first().unwrap()["event"], "audit.started");
    assert_eq!(trail.last().unwrap()["event"], "audit.stopped");
    assert_eq!(trail.last().unwrap()["audit.lost"], 0);
}
