//! Limits that apply to all replicas together.

use std::time::Duration;

use portcullis_scenarios::{Deployment, INITIALIZE, Redis, Request};
use tokio::time::sleep;

use super::deployment::Replicas;

/// How long counts may take to the other replicas: the interval, and some more on a loaded machine.
const LIMIT_EXCHANGE: Duration = Duration::from_secs(3);

/// E13: a rate limit counts the requests at all replicas.
#[tokio::test]
async fn rates_apply_to_all() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let limits = "[limits]\nper_principal = { requests = 9, per = \"1h\" }\nper_address = { requests = 99, per = \"1h\" }";
    let replicas = Replicas::start(&redis, 2, limits).await;
    let session = replicas.open(0).await;
    for _ in 1..8 {
        assert_eq!(replicas.echo(0, &session).await.status, 200);
    }
    sleep(LIMIT_EXCHANGE).await;
    assert_eq!(
        replicas.echo(1, &session).await.status,
        200,
        "one request is left"
    );

    let response = replicas.echo(1, &session).await;
    assert_eq!(response.status, 429, "{response:?}");
    replicas
        .replica(1)
        .assert_denied(&response, "limit.principal")
        .await;
    sleep(LIMIT_EXCHANGE).await;
    assert_eq!(replicas.echo(0, &session).await.status, 429);
}

/// E9, E13: the sessions of an owner at all replicas count for its limit. A session that several
/// replicas serve counts once.
#[tokio::test]
async fn sessions_of_an_owner_count_at_all() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let replicas = Replicas::with(&redis, 2, "max_per_owner = 3", "", Deployment::builder()).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(replicas.open(0).await);
    }
    sleep(LIMIT_EXCHANGE).await;

    // All of them are used everywhere, without an eviction.
    for session in &sessions {
        assert_eq!(replicas.echo(1, session).await.status, 200);
    }
    sleep(LIMIT_EXCHANGE).await;
    for session in &sessions {
        assert_eq!(replicas.echo(0, session).await.status, 200);
    }
    assert_eq!(replicas.delete(1, &sessions[0]).await.status, 200);

    sessions[0] = replicas.open(0).await;
    sleep(LIMIT_EXCHANGE).await;

    // The other replica has two of the three in its table.
    replicas.open(1).await;
    let mut ended = 0;
    for session in &sessions {
        ended += usize::from(replicas.echo(1, session).await.status == 404);
    }
    assert_eq!(ended, 1);

    let owners = replicas.administrations[0].sessions("").await;
    assert!(owners["total"].as_u64().unwrap() <= 3, "{owners}");
}

/// E9, E13: the sessions of a subject at all replicas count for its limit, whichever client has
/// them.
#[tokio::test]
async fn sessions_of_a_subject_count_at_all() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let replicas = Replicas::with(
        &redis,
        2,
        "max_per_owner = 2\nmax_per_subject = 3",
        "",
        Deployment::builder(),
    )
    .await;
    let open = async |number: usize, client: &str| {
        let token = replicas
            .deployment
            .token()
            .subject("mallory")
            .client_id(client)
            .sign();
        let initialize = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&token);
        initialize.send(replicas.replica(number).address()).await
    };
    for client in ["a", "a", "b"] {
        assert_eq!(open(0, client).await.status, 200);
    }
    sleep(LIMIT_EXCHANGE).await;
    let response = open(1, "c").await;
    assert_eq!(response.status, 503, "{response:?}");
    replicas
        .replica(1)
        .assert_denied(&response, "session.subject_full")
        .await;
}
