//! Replicas in one process, with a real `redis-server`. They run on a thread of their own, so that a
//! command of the test does not keep them from answering in time.
#![cfg(feature = "redis")]
#![allow(
    clippy::unwrap_used,
    reason = "a test fails where something is missing"
)]

mod records;
mod replica;
mod server;

use std::time::{Duration, Instant};

use portcullis_metadata::{ResourceUri, Scopes};
use portcullis_session::{
    EndReason, EndScope, Owner, ResolveError, SessionJournal as _, SessionSettings, SessionTarget,
};
use portcullis_state_store::{RedisJournal, RedisState};
use tokio::time::{sleep, timeout};

use self::{replica::Replica, server::Redis};

/// The maximum time for which a test waits for what must happen.
const TIMEOUT: Duration = Duration::from_secs(30);
const OWNER: Owner<'_> = Owner::Subject {
    issuer: "https://issuer",
    subject: "alice",
    client: None,
};

/// Waits until a condition is met, and fails if it is not met in time.
async fn eventually(name: &str, is_met: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_met() {
        assert!(started.elapsed() < TIMEOUT, "not in time: {name}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn target() -> SessionTarget {
    ResourceUri::parse("https://mcp.example.com/mcp")
        .unwrap()
        .into()
}

/// E13: an end that is confirmed is known on the other replica. A fresh replica is ready at once,
/// and a crashed one delays a confirmation by at most its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ends_reach_all_replicas() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let mut last = String::new();
    for round in 0..200 {
        last = one.open();
        if round % 2 == 0 {
            assert_eq!(other.check(&last), Ok(()));
        }
        assert!(one.end(&last).await);
        assert_eq!(other.check(&last), Err(ResolveError::Ended));
    }
    assert_eq!(one.journal.replicas(), 2);
    assert_eq!(other.journal.replicas(), 2);

    let fresh = Replica::start(&redis);
    let started = Instant::now();
    fresh.reaches(RedisState::Complete).await;
    assert!(
        started.elapsed() < RedisJournal::LEASE / 2,
        "{:?}",
        started.elapsed()
    );
    assert_eq!(fresh.check(&last), Err(ResolveError::Ended));

    let session = one.open();
    fresh.crash().await;
    assert!(one.end(&session).await);
    assert_eq!(other.check(&session), Err(ResolveError::Ended));
}

/// E13: Redis is killed and restarted empty: ends hold everywhere, and a fresh replica accepts no
/// ended session.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ends_survive_a_loss_of_redis() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let kept = one.open();
    let ended = one.open();
    let unconfirmed = one.open();
    assert!(other.end(&ended).await);

    redis.kill();
    one.reaches(RedisState::Unreachable).await;
    other.reaches(RedisState::Unreachable).await;
    assert!(!one.end(&unconfirmed).await);
    assert_eq!(one.check(&kept), Ok(()));
    assert_eq!(one.check(&unconfirmed), Err(ResolveError::Ended));

    let early = Replica::start(&redis);
    assert_eq!(early.check(&kept), Err(ResolveError::NotReady));

    redis.restart();
    let fresh = Replica::start(&redis);
    while fresh.journal.state() != RedisState::Complete {
        for session in [&ended, &unconfirmed] {
            assert!(matches!(
                fresh.check(session),
                Err(ResolveError::NotReady | ResolveError::Ended)
            ));
        }
        sleep(Duration::from_millis(5)).await;
    }
    for replica in [&one, &other, &early, &fresh] {
        replica.reaches(RedisState::Complete).await;
        for session in [&ended, &unconfirmed] {
            assert_eq!(replica.check(session), Err(ResolveError::Ended));
        }
        assert_eq!(replica.check(&kept), Ok(()));
    }
    assert!(fresh.end(&kept).await);
    assert_eq!(one.check(&kept), Err(ResolveError::Ended));
    assert!(one.journal.is_complete());
    assert!(one.journal.was_complete());
}

/// E13: a list of ends that Redis has evicted is written again, and no fresh replica takes the
/// empty one for complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ends_survive_an_eviction() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    let ended = one.open();
    assert!(one.end(&ended).await);
    assert_eq!(redis.command(&["DEL", "{test}:session-ends"]), "1");
    let fresh = Replica::start(&redis);
    while fresh.journal.state() != RedisState::Complete {
        assert!(matches!(
            fresh.check(&ended),
            Err(ResolveError::NotReady | ResolveError::Ended)
        ));
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fresh.check(&ended), Err(ResolveError::Ended));
}

/// E13: scripts that Redis has forgotten are sent to it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn forgotten_scripts_are_sent_again() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let session = one.open();
    assert_eq!(redis.command(&["SCRIPT", "FLUSH"]), "OK");
    assert!(one.end(&session).await);
    assert_eq!(other.check(&session), Err(ResolveError::Ended));
    assert_eq!(one.journal.state(), RedisState::Complete);
    assert_eq!(one.journal.failure(), None);
}

/// E13: members and messages that cannot be read stop no replica, and the others count.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn unreadable_data_is_left_out() {
    let Some(redis) = Redis::start() else { return };
    assert_eq!(
        redis.command(&[
            "ZADD",
            "{test}:session-ends",
            "1900000000000",
            "another version"
        ]),
        "1"
    );
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    for message in ["", "?", "Ean end of another version"] {
        assert_eq!(
            redis.command(&["PUBLISH", "{test}:session-events", message]),
            "2",
            "{message}"
        );
    }
    let session = one.open();
    assert!(one.end(&session).await);
    assert_eq!(other.check(&session), Err(ResolveError::Ended));
    assert_eq!(one.journal.failure(), None);
    assert_eq!(other.journal.failure(), None);
}

/// E13: a user with the permissions in `docs/use/replicas.md`, and no others, suffices.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_documented_permissions_suffice() {
    let Some(redis) = Redis::start() else { return };
    let page = include_str!("../../../../docs/use/replicas.md");
    let (_, list) = page.split_once("The user needs").unwrap();
    let (list, _) = list.split_once("Redis holds hashes").unwrap();
    let commands: Vec<_> = list
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|command| format!("+{command}"))
        .collect();
    let mut arguments = vec![
        "ACL",
        "SETUSER",
        "replica",
        "on",
        "nopass",
        "~{test}:*",
        "&{test}:*",
    ];
    arguments.extend(commands.iter().map(String::as_str));
    assert_eq!(redis.command(&arguments), "OK", "{commands:?}");

    let replicas = [
        Replica::start_as(&redis, "replica"),
        Replica::start_as(&redis, "replica"),
    ];
    for replica in &replicas {
        replica.reaches(RedisState::Complete).await;
    }
    let [one, other] = &replicas;
    let session = one.open();
    assert_eq!(other.check(&session), Ok(()));

    one.sessions.record_last_uses();
    one.journal.share_inactive_token([7; 16]);
    eventually("the token is received", || {
        *other.received.inactive.lock() == [[7; 16]]
    })
    .await;
    assert!(other.end(&session).await);
    assert_eq!(one.journal.failure(), None);
    assert_eq!(other.journal.failure(), None);

    one.journal.close();
    eventually("the replica has left", || {
        redis.command(&["HLEN", "{test}:replicas"]) == "1"
    })
    .await;
}

/// E13: an end that another replica has not acknowledged when the journal is closed fails, and its
/// ticket does not wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_closed_journal_confirms_nothing() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    eventually("both replicas are alive", || one.journal.replicas() == 2).await;

    let identifier = one.open();
    let session = one
        .sessions
        .resolve(&target(), OWNER, &Scopes::empty(), identifier.as_bytes())
        .unwrap();
    other.crash().await;
    let ticket = one.sessions.end(&session, EndReason::Deleted).unwrap();
    one.journal.close();
    assert!(timeout(TIMEOUT, ticket).await.unwrap().is_err());
    one.reaches(RedisState::Unreachable).await;
    assert_eq!(
        redis.command(&["ZCARD", "{test}:session-ends"]),
        "2",
        "the end and the generation"
    );
}

/// E13: a drop that is confirmed was applied once at the other replicas. Without Redis it is not
/// confirmed, and applied when Redis is back without its data. Inactive tokens reach the others,
/// and each new connection is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn revocations_reach_all_replicas() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let [first, second] =
        ["https://one", "https://two"].map(|issuer| EndScope::Issuer(issuer).id());
    one.journal.drop_tokens(first).await.unwrap();
    assert_eq!(*other.received.dropped.lock(), [first]);
    assert!(one.received.dropped.lock().is_empty(), "its own one");

    one.journal.share_inactive_token([7; 16]);
    eventually("the token is received", || {
        *other.received.inactive.lock() == [[7; 16]]
    })
    .await;
    redis.kill();
    one.reaches(RedisState::Unreachable).await;
    other.reaches(RedisState::Unreachable).await;
    assert!(one.journal.drop_tokens(second).await.is_err());

    one.journal.share_inactive_token([8; 16]);
    redis.restart();
    for replica in [&one, &other] {
        replica.reaches(RedisState::Complete).await;
    }
    eventually("the drop is received", || {
        other.received.dropped.lock().len() >= 2
    })
    .await;
    let fresh = Replica::start(&redis);
    fresh.reaches(RedisState::Complete).await;
    assert_eq!(fresh.received.dropped.lock().len(), 2, "both are recorded");
    assert_eq!(
        *other.received.dropped.lock(),
        [first, second],
        "each is applied once"
    );
    assert_eq!(*other.received.connections.lock(), 2);
}

/// E13: sessions that a replica opens count at the others, while they are not in their tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn opened_sessions_count_elsewhere() {
    let Some(redis) = Redis::start() else { return };
    let one = Replica::start(&redis);
    let other = Replica::start(&redis);
    one.reaches(RedisState::Complete).await;
    other.reaches(RedisState::Complete).await;
    let first = other.open();
    for _ in 0..SessionSettings::DEFAULT_MAX_PER_OWNER {
        one.open();
    }
    one.sessions.announce_opened();
    let started = Instant::now();
    while other.check(&first).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(10));
        other.open();
        sleep(Duration::from_millis(10)).await;
    }
    assert!(other.sessions.len() < SessionSettings::DEFAULT_MAX_PER_OWNER);
}
