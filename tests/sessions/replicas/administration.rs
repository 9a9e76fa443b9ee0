//! Administrators of one replica, whose actions apply to all.

use http::Method;
use portcullis_scenarios::{Administration, Redis, Request, TIMEOUT};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};

use super::deployment::Replicas;

/// E9, E13: an end of all sessions of a subject at one replica ends those that only another one
/// knows, and that one ends them at the upstream.
#[tokio::test]
async fn sessions_of_other_replicas_end_at_the_upstream() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let replicas = Replicas::start(&redis, 2, "").await;
    let sessions = [replicas.open(1).await, replicas.open(1).await];
    let opened = replicas.deployment.upstream.count();
    let issuer = "https://issuer.example";
    let listed = replicas.administrations[1].sessions("").await;
    let subject = listed["sessions"][0]["subject"].as_str().unwrap();
    let body = json!({ "subject": subject, "issuer": issuer }).to_string();
    let end = Request::post("/v1/sessions/end", body).bearer(Administration::TOKEN);
    let (status, ended) = replicas.administrations[0].send(end).await;
    assert_eq!(status, 200);
    assert_eq!(ended, json!({ "sessions_ended": 0, "streams_ended": 0 }));

    for session in &sessions {
        replicas
            .echo(1, session)
            .await
            .assert_rpc_error(404, -32000);
    }
    let deleted = || {
        let recorded = replicas.deployment.upstream.recorded();
        recorded
            .into_iter()
            .skip(opened)
            .filter(|request| request.method == Method::DELETE)
            .count()
    };
    let started = Instant::now();
    while deleted() < sessions.len() {
        assert!(
            started.elapsed() < TIMEOUT,
            "the upstream still has the sessions"
        );
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(replicas.administrations[1].sessions("").await["total"], 0);
}
