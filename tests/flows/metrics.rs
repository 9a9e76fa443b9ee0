//! Metrics over the listener for administrators.

use portcullis_scenarios::{
    Administration, Deployment, RecordedRequest, Request, Scratch, Upstream, call_message,
};
use serde_json::json;

/// Returns the value of a sample.
fn value(text: &str, sample: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

/// J2, J7: requests are counted by resource, decision and reason code, with their times, and
/// nothing that a client sends is a label.
#[tokio::test]
async fn requests_are_counted() {
    let administration = Administration::default();
    let deployment = administration.of(Deployment::builder(), "").start().await;
    let token = deployment.token().subject("alice").sign();
    let session = deployment.open_session(&token).await;
    let body = call_message(2, "tools/call", &json!({ "name": "a-tool-name" }));
    let answer = deployment
        .send(
            Request::post(Deployment::ENDPOINT, body)
                .bearer(&token)
                .session(&session),
        )
        .await;
    assert_eq!(answer.status, 200);

    for path in ["/mcp", "/mcp?x=1"] {
        assert_eq!(deployment.send(Request::post(path, "{}")).await.status, 401);
    }
    assert_eq!(
        deployment
            .try_token(&deployment.token().expires_in(-600).sign())
            .await
            .status,
        401
    );

    let text = administration.metrics(Administration::TOKEN).await;
    let resource = format!("resource=\"{}\"", Deployment::RESOURCE);
    let requests = |decision: &str, code: &str| {
        value(
            &text,
            &format!(
                "portcullis_requests_total{{{resource},decision=\"{decision}\",code=\"{code}\"}}"
            ),
        )
    };
    assert_eq!(requests("allow", "none"), Some(2.0), "{text}");
    assert_eq!(requests("deny", "bearer.missing"), Some(2.0));
    assert_eq!(requests("deny", "token.expired"), Some(1.0));

    let of_resource = |name: &str| value(&text, &format!("portcullis_{name}{{{resource}}}"));
    assert_eq!(of_resource("request_duration_seconds_count"), Some(5.0));
    assert_eq!(of_resource("upstream_duration_seconds_count"), Some(2.0));
    assert_eq!(
        of_resource("verification_duration_seconds_count"),
        Some(2.0)
    );
    assert_eq!(of_resource("token_cache_hits_total"), Some(1.0));
    assert_eq!(of_resource("cached_tokens"), Some(1.0));
    assert!(of_resource("upstream_connections").is_some_and(|open| open >= 1.0));
    assert_eq!(value(&text, "portcullis_sessions"), Some(1.0));
    assert_eq!(value(&text, "portcullis_sessions_opened_total"), Some(1.0));
    assert_eq!(
        value(
            &text,
            "portcullis_issuer_usable{issuer=\"https://issuer.example\"}"
        ),
        Some(1.0)
    );
    assert!(value(&text, "process_resident_memory_bytes").is_some_and(|bytes| bytes > 1e6));
    assert_eq!(value(&text, "portcullis_ready"), Some(1.0));

    for secret in [
        &token,
        &session,
        "alice",
        "a-tool-name",
        "x=1",
        Administration::TOKEN,
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
}

/// J7: the time of the demo server is counted and logged as that of any upstream.
#[tokio::test]
async fn the_demo_server_is_measured() {
    let administration = Administration::default();
    let builder = Deployment::builder().upstream_setting("\"demo\"");
    let deployment = administration.of(builder, "").start().await;
    let opened = deployment.try_token(&deployment.good_token()).await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let line = deployment.portcullis.access_line(&opened).await;
    assert!(line["upstream.us"].is_u64(), "{line}");
    let text = administration.metrics(Administration::TOKEN).await;
    let count = format!(
        "portcullis_upstream_duration_seconds_count{{resource=\"{}\"}}",
        Deployment::RESOURCE
    );
    assert_eq!(value(&text, &count), Some(1.0), "{text}");
}

/// J7: failures of the upstream and ended sessions have their reason codes.
#[tokio::test]
async fn failures_are_counted() {
    let administration = Administration::default();
    let script = |request: &RecordedRequest| {
        (request.message_method().as_deref() == Some("broken"))
            .then(|| Upstream::response(401, &[], ""))
    };
    let builder = Deployment::builder().upstream(Upstream::scripted(script).await);
    let deployment = administration.of(builder, "").start().await;
    let token = deployment.good_token();
    let session = deployment.open_session(&token).await;
    let broken = Request::post(Deployment::ENDPOINT, call_message(2, "broken", &json!({})))
        .bearer(&token)
        .session(&session);
    assert_eq!(deployment.send(broken).await.status, 502);

    let delete = Request::delete(Deployment::ENDPOINT, &token, &session);
    deployment.send(delete).await;
    let text = administration.metrics(Administration::TOKEN).await;
    assert!(
        text.contains("decision=\"fail\",code=\"upstream.unauthorized\"} 1\n"),
        "{text}"
    );
    assert!(
        text.contains("portcullis_sessions_ended_total{reason=\"deleted\"} 1\n"),
        "{text}"
    );
}

/// J7: a token for metrics reads only them, and there are none without a token.
#[tokio::test]
async fn metrics_have_a_token_of_their_own() {
    let administration = Administration::default();
    let reader = "metrics-token-of-a-scenario-0123456789";
    let metrics_token = Scratch::file("metrics-token", reader);
    let tables = format!(
        "{}\nmetrics_token = {{ file = \"{}\" }}",
        administration.table(),
        metrics_token.as_str()
    );
    let deployment = Deployment::builder().tables(tables).start().await;
    assert!(
        administration
            .metrics(reader)
            .await
            .contains("portcullis_build_info")
    );
    assert!(
        administration
            .metrics(Administration::TOKEN)
            .await
            .contains("portcullis_build_info")
    );

    for (request, expected) in [
        (
            Request::new("GET", "/v1/sessions").bearer(reader),
            (403, "admin.token_restricted"),
        ),
        (
            Request::post("/v1/sessions/end", "{\"subject\":\"a\"}").bearer(reader),
            (403, "admin.token_restricted"),
        ),
        (
            Request::new("GET", "/metrics"),
            (401, "admin.token_missing"),
        ),
        (
            Request::new("GET", "/metrics").bearer("wrong"),
            (401, "admin.token_invalid"),
        ),
        (
            Request::new("GET", "/metrics")
                .bearer(reader)
                .header("Origin", "http://localhost"),
            (403, "origin.not_allowed"),
        ),
    ] {
        let (status, answer) = administration.send(request).await;
        assert_eq!(
            (status, answer["error"]["code"].as_str().unwrap()),
            expected
        );
    }
    let answer = deployment
        .send(Request::new("GET", "/metrics").bearer(Administration::TOKEN))
        .await;
    assert_eq!(answer.status, 404, "the listener of clients has no metrics");
}
