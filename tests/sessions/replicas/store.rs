//! Redis is down at the start or later, is restarted, or loses its data.

use std::time::{Duration, Instant};

use portcullis_scenarios::{
    Deployment, Redis, Request, readiness, wait_for_state, wait_until_ready,
};
use tokio::time::sleep;

use super::deployment::Replicas;

/// E13: after Redis was killed and restarted empty, ended sessions stay ended everywhere, a fresh
/// replica does not accept them, and the other sessions continue.
#[tokio::test]
async fn redis_restarts_without_data() {
    let Some(mut redis) = Redis::start().await else {
        return;
    };
    let mut replicas = Replicas::start(&redis, 2, "").await;
    let active = replicas.open(0).await;
    let ended = replicas.open(0).await;
    let unused = replicas.open(1).await;
    assert_eq!(replicas.delete(1, &ended).await.status, 200);

    redis.kill().await;
    redis.restart_empty().await;
    let fresh = replicas.add().await;
    let started = Instant::now();

    // Before it has the ended sessions, it accepts none of these sessions.
    while started.elapsed() < Duration::from_secs(8) {
        let response = replicas.echo(fresh, &ended).await;
        assert!([503, 404].contains(&response.status), "{response:?}");
        assert_eq!(
            replicas.echo(0, &active).await.status,
            200,
            "known sessions continue"
        );
        replicas.echo(0, &ended).await.assert_rpc_error(404, -32000);
        sleep(Duration::from_millis(50)).await;
    }
    for replica in replicas.all() {
        wait_until_ready(replica).await;
    }
    replicas
        .echo(fresh, &ended)
        .await
        .assert_rpc_error(404, -32000);
    for session in [&active, &unused] {
        assert_eq!(replicas.echo(fresh, session).await.status, 200);
    }
    assert_eq!(
        replicas.delete(0, &active).await.status,
        200,
        "ends are confirmed again"
    );
    replicas
        .echo(fresh, &active)
        .await
        .assert_rpc_error(404, -32000);
}

/// E13: while Redis is unreachable, known sessions continue, and an end takes effect at its replica
/// without a confirmation. When Redis is reachable again, it takes effect at all replicas. A
/// replica started meanwhile accepts no identifiers of others.
#[tokio::test]
async fn redis_is_unreachable() {
    let Some(mut redis) = Redis::start().await else {
        return;
    };
    let mut replicas = Replicas::start(&redis, 2, "").await;
    let active = replicas.open(0).await;
    let ended = replicas.open(0).await;
    assert_eq!(replicas.echo(1, &ended).await.status, 200);

    redis.kill().await;
    wait_for_state(replicas.replica(0), "unreachable").await;
    assert_eq!(
        readiness(replicas.replica(0)).await.status,
        200,
        "it continues its sessions"
    );
    replicas
        .replica(0)
        .logged("redis cannot be used", |line| line["level"] == "ERROR")
        .await;

    assert_eq!(replicas.echo(0, &active).await.status, 200);
    assert_eq!(replicas.echo(0, &replicas.open(0).await).await.status, 200);
    let response = replicas.delete(0, &ended).await;
    assert_eq!(response.status, 503, "{response:?}");
    replicas
        .replica(0)
        .assert_denied(&response, "session.end_not_recorded")
        .await;

    replicas.echo(0, &ended).await.assert_rpc_error(404, -32000);
    assert_eq!(
        replicas.echo(1, &ended).await.status,
        200,
        "it was not confirmed"
    );

    let fresh = replicas.add().await;
    assert_eq!(readiness(replicas.replica(fresh)).await.status, 503);
    let response = replicas.echo(fresh, &active).await;
    assert_eq!(response.status, 503, "{response:?}");
    replicas
        .replica(fresh)
        .assert_denied(&response, "session.not_ready")
        .await;

    redis.restart_empty().await;
    for replica in replicas.all() {
        wait_until_ready(replica).await;
    }
    for number in 0..=fresh {
        replicas
            .echo(number, &ended)
            .await
            .assert_rpc_error(404, -32000);
        assert_eq!(replicas.echo(number, &active).await.status, 200);
    }
}

/// E13: with `strict`, all requests are rejected while Redis is unreachable, except the health
/// checks.
#[tokio::test]
async fn strict_mode() {
    let Some(mut redis) = Redis::start().await else {
        return;
    };
    let replicas = Replicas::start(&redis, 1, "strict = true").await;
    let session = replicas.open(0).await;
    assert_eq!(replicas.echo(0, &session).await.status, 200);

    redis.kill().await;
    wait_for_state(replicas.replica(0), "unreachable").await;
    let response = replicas.echo(0, &session).await;
    assert_eq!(response.status, 503, "{response:?}");
    assert_eq!(response.header("retry-after"), Some("1"), "{response:?}");
    replicas
        .replica(0)
        .assert_denied(&response, "shared.unreachable")
        .await;
    assert_eq!(readiness(replicas.replica(0)).await.status, 503);

    let healthy = Request::new("GET", "/healthz")
        .send(replicas.replica(0).address())
        .await;
    assert_eq!(healthy.status, 200);
    redis.restart_empty().await;
    wait_until_ready(replicas.replica(0)).await;
    assert_eq!(replicas.echo(0, &session).await.status, 200);
}

/// E13: a replica that starts without Redis says so and is not ready. It opens sessions and
/// continues them, rejects those of others with 503, and joins when Redis is there.
#[tokio::test]
async fn redis_is_down_at_the_start() {
    let Some(mut redis) = Redis::start().await else {
        return;
    };
    let mut replicas = Replicas::start(&redis, 1, "").await;
    let known = replicas.open(0).await;
    redis.kill().await;
    let fresh = replicas.add().await;
    let ready = readiness(replicas.replica(fresh)).await;
    assert_eq!(ready.status, 503, "{ready:?}");

    let report = ready.json()["shared"].clone();
    assert_eq!(report["redis"], "unreachable", "{report}");
    assert!(report["reason"].is_string(), "{report}");
    replicas
        .replica(fresh)
        .logged("redis cannot be used", |line| line["level"] == "ERROR")
        .await;
    replicas
        .replica(fresh)
        .logged("their sessions get 503", |line| line["level"] == "WARN")
        .await;
    let own = replicas.open(fresh).await;
    assert_eq!(replicas.echo(fresh, &own).await.status, 200);

    let deleted = replicas.delete(fresh, &own).await;
    assert_eq!(deleted.status, 503, "{deleted:?}");
    let foreign = replicas.echo(fresh, &known).await;
    assert_eq!(foreign.status, 503, "{foreign:?}");
    assert!(foreign.header("retry-after").is_some(), "{foreign:?}");

    redis.restart_empty().await;
    wait_until_ready(replicas.replica(fresh)).await;
    replicas
        .replica(fresh)
        .logged("redis is connected", |_| true)
        .await;
    assert_eq!(replicas.echo(fresh, &known).await.status, 200);

    replicas.echo(0, &own).await.assert_rpc_error(404, -32000);
    assert_eq!(replicas.delete(fresh, &known).await.status, 200);
}

/// E13: with `strict`, a replica that starts without Redis rejects every request except the health
/// checks.
#[tokio::test]
async fn strict_mode_at_the_start() {
    let Some(mut redis) = Redis::start().await else {
        return;
    };
    let mut replicas = Replicas::start(&redis, 1, "strict = true").await;
    redis.kill().await;
    let fresh = replicas.add().await;
    let address = replicas.replica(fresh).address();
    assert_eq!(readiness(replicas.replica(fresh)).await.status, 503);
    assert_eq!(
        Request::new("GET", "/healthz").send(address).await.status,
        200
    );

    for (method, path) in [
        ("POST", "/mcp"),
        ("DELETE", "/mcp"),
        ("GET", "/mcp"),
        ("GET", Deployment::METADATA_PATH),
    ] {
        let response = Request::new(method, path)
            .bearer(&replicas.token)
            .send(address)
            .await;
        assert_eq!(response.status, 503, "{method} {path}: {response:?}");
    }
    redis.restart_empty().await;
    wait_until_ready(replicas.replica(fresh)).await;
    replicas.open(fresh).await;
}

/// E13: after all data was deleted from Redis while it runs, ended sessions stay ended everywhere,
/// and the others continue.
#[tokio::test]
async fn redis_is_emptied() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let mut replicas = Replicas::start(&redis, 2, "").await;
    let active = replicas.open(0).await;
    let ended = replicas.open(0).await;
    assert_eq!(replicas.delete(1, &ended).await.status, 200);
    assert!(redis.command("FLUSHALL").await.starts_with("+OK"));
    assert_eq!(
        replicas.echo(0, &active).await.status,
        200,
        "known sessions continue"
    );

    let fresh = replicas.add().await;
    wait_until_ready(replicas.replica(fresh)).await;
    for number in 0..=fresh {
        replicas
            .echo(number, &ended)
            .await
            .assert_rpc_error(404, -32000);
        assert_eq!(replicas.echo(number, &active).await.status, 200);
    }
    assert_eq!(replicas.delete(fresh, &active).await.status, 200);
    replicas
        .echo(0, &active)
        .await
        .assert_rpc_error(404, -32000);
}

/// E12, E13: a DELETE is confirmed by no replica before all of them know the end, whether it is
/// repeated at the same replica or at another one, where the upstream does not know the session any
/// more.
#[tokio::test]
async fn repeated_deletes_are_confirmed_when_recorded() {
    let Some(mut redis) = Redis::start().await else {
        return;
    };
    let replicas = Replicas::start(&redis, 2, "").await;
    let session = replicas.open(0).await;
    assert_eq!(replicas.echo(1, &session).await.status, 200);
    redis.kill().await;
    for replica in replicas.all() {
        wait_for_state(replica, "unreachable").await;
    }
    for number in [0, 0, 1, 1, 0] {
        let response = replicas.delete(number, &session).await;
        assert_eq!(response.status, 503, "{response:?}");
    }
    redis.restart_empty().await;
    for replica in replicas.all() {
        wait_until_ready(replica).await;
    }
    for number in [0, 1] {
        assert_eq!(replicas.delete(number, &session).await.status, 404);
        replicas
            .echo(number, &session)
            .await
            .assert_rpc_error(404, -32000);
    }
}
