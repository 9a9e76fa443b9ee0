//! Replicas that share their sessions through a real `redis-server`.

mod administration;
mod broker;
mod deployment;
mod limits;
mod store;
mod tokens;

use std::time::{Duration, Instant};

use portcullis_scenarios::{Redis, Signal};

use self::deployment::Replicas;

/// E13: replicas continue each other's sessions. After a confirmed end, all replicas reject the
/// session, also those that have it in their tables.
#[tokio::test]
async fn sessions_continue_and_end_on_all() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let replicas = Replicas::start(&redis, 2, "").await;
    for (here, there) in [(0, 1), (1, 0)] {
        for is_used_there in [false, true] {
            // An end that is confirmed too early shows only sometimes.
            for _ in 0..5 {
                let session = replicas.open(here).await;
                if is_used_there {
                    assert_eq!(replicas.echo(there, &session).await.status, 200);
                }
                assert_eq!(replicas.delete(here, &session).await.status, 200);
                replicas
                    .echo(there, &session)
                    .await
                    .assert_rpc_error(404, -32000);
                assert_eq!(replicas.delete(there, &session).await.status, 404);
            }
        }
    }
}

/// E13: a replica that was killed delays the confirmation of an end until its lease of 2 s expires,
/// but does not prevent it.
#[tokio::test]
async fn killed_replicas() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let replicas = Replicas::start(&redis, 2, "").await;
    let session = replicas.open(0).await;
    assert_eq!(replicas.echo(1, &session).await.status, 200);

    let killed = Instant::now();
    replicas.replica(1).signal(Signal::KILL);
    assert_eq!(replicas.echo(0, &session).await.status, 200);
    assert_eq!(replicas.delete(0, &session).await.status, 200);
    // The lease began with the last beat before the kill, which may have been late.
    assert!(
        killed.elapsed() > Duration::from_millis(500),
        "{:?}",
        killed.elapsed()
    );
    replicas
        .echo(0, &session)
        .await
        .assert_rpc_error(404, -32000);
}
