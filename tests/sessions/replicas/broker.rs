//! Replicas whose brokers share their sign-ins through a real `redis-server`.

mod servers;

use std::time::{Duration, Instant};

use portcullis_scenarios::{
    Portcullis, Redis, Signal, TIMEOUT, readiness, wait_for_state, wait_until_ready,
};
use tokio::time::sleep;

use self::servers::{Servers, Tokens};

/// Waits until a replica answers a request with an access token with this status.
async fn wait_for_status(servers: &Servers, number: usize, tokens: &Tokens, status: u16) {
    let started = Instant::now();
    while servers.try_token(number, tokens).await.status != status {
        assert!(started.elapsed() < TIMEOUT);
        sleep(Duration::from_millis(20)).await;
    }
}

/// TK5, RF2: a sign-in continues at any replica. Each of them accepts and refreshes its tokens, and
/// rejects them after they were revoked at another one, also after a restart.
#[tokio::test]
async fn sign_ins_continue_and_end_on_all() {
    let Some(redis) = Redis::start_durable().await else {
        return;
    };
    let mut servers = Servers::start(&redis, 2).await;
    let first = servers.sign_in().await;
    for number in [0, 1] {
        assert_eq!(servers.try_token(number, &first).await.status, 200);
    }
    let second = Tokens::of(&servers.refresh(1, &first).await);
    let repeated = Tokens::of(&servers.refresh(0, &first).await);
    assert_eq!(repeated.refresh, second.refresh);
    assert_eq!(servers.try_token(0, &second).await.status, 200);

    let other = servers.sign_in().await;
    servers.revoke(0, &second).await;
    for tokens in [&first, &second] {
        assert_eq!(servers.try_token(0, tokens).await.status, 401);
        wait_for_status(&servers, 1, tokens, 401).await;
    }
    let ended = "a grant ended at another replica";
    servers.program(1).logged(ended, |_| true).await;
    assert_eq!(servers.refresh(1, &second).await.status, 400);

    servers.restart(0, Signal::TERM).await;
    assert_eq!(servers.try_token(0, &second).await.status, 401);
    for number in [0, 1] {
        assert_eq!(servers.try_token(number, &other).await.status, 200);
    }
    Tokens::of(&servers.refresh(0, &other).await);
}

/// ST4: while Redis is down, no token is issued, and running replicas accept those that were. A
/// replica that starts does not know which were revoked, and accepts none until Redis is back.
#[tokio::test]
async fn redis_is_down() {
    let Some(mut redis) = Redis::start_durable().await else {
        return;
    };
    let mut servers = Servers::start(&redis, 2).await;
    let tokens = servers.sign_in().await;
    let revoked = servers.sign_in().await;
    servers.revoke(0, &revoked).await;
    wait_for_status(&servers, 1, &revoked, 401).await;

    redis.kill().await;
    wait_for_state(servers.program(1), "unreachable").await;
    for endpoint in [servers.refresh(1, &tokens).await, servers.register(1).await] {
        assert_eq!(endpoint.status, 503, "{endpoint:?}");
        assert_eq!(endpoint.json()["error"], "temporarily_unavailable");
    }
    assert_eq!(servers.try_token(1, &tokens).await.status, 200);
    assert_eq!(servers.try_token(1, &revoked).await.status, 401);
    let unread = "the ends of sign-ins at other replicas cannot be read;";
    servers.program(1).logged(unread, |_| true).await;

    servers.restart(0, Signal::KILL).await;
    assert_eq!(readiness(servers.program(0)).await.status, 503);
    for tokens in [&tokens, &revoked] {
        let response = servers.try_token(0, tokens).await;
        assert_eq!(response.status, 401, "{response:?}");
        assert!(response.header("retry-after").is_some(), "{response:?}");
        let started = servers.program(0);
        started.assert_denied(&response, "issuer.unavailable").await;
    }

    redis.restart().await;
    for number in [0, 1] {
        wait_until_ready(servers.program(number)).await;
    }
    let again = "the ends of sign-ins at other replicas can be read again";
    servers.program(1).logged(again, |_| true).await;
    wait_for_status(&servers, 0, &tokens, 200).await;
    let response = servers.try_token(0, &revoked).await;
    assert_eq!(response.status, 401, "{response:?}");
    servers
        .program(0)
        .assert_denied(&response, "token.revoked")
        .await;
    for number in [0, 1] {
        assert_eq!(servers.try_token(number, &tokens).await.status, 200);
        Tokens::of(&servers.refresh(number, &tokens).await);
    }
}

/// ST3: a server does not start with a Redis that can lose records, unless its operator confirms
/// that it keeps them.
#[tokio::test]
async fn redis_can_lose_records() {
    let Some(redis) = Redis::start().await else {
        return;
    };
    let configuration = servers::configuration(&redis, "").await;
    let arguments = ["serve", "--config", configuration.file.as_str()];
    let finished = Portcullis::run(&arguments).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for text in [
        "shared.redis",
        "appendfsync always",
        "records.redis_durability",
    ] {
        assert!(finished.stderr.contains(text), "{text}: {finished:?}");
    }
    let confirmed = servers::configuration(&redis, "assume_durable = true").await;
    Portcullis::start(&["serve", "--config", confirmed.file.as_str()]).await;
}
