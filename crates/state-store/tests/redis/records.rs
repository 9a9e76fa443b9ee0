//! Records in a real `redis-server`.

#[path = "../../src/records/suite.rs"]
mod suite;

use std::{net::TcpListener, sync::Arc, time::Duration};

use portcullis_metadata::{Clock, Secret, SystemClock, UnixTime};
use portcullis_state_store::{RedisSettings, Retention, records::*};
use portcullis_testkit::ManualClock;
use tokio::{task::JoinSet, time::Instant};
use zeroize::Zeroizing;

use super::{TIMEOUT, server::Redis};

const LEFT: Table = Table("left");
const RIGHT: Table = Table("right");

fn settings(port: u16) -> RedisSettings {
    let time = Duration::from_secs(100);
    let retention = Retention {
        lifetime: time,
        idle_timeout: time,
    };
    RedisSettings::new(format!("redis://127.0.0.1:{port}"), "test", retention)
}

fn open(port: u16) -> RedisRecords {
    RedisRecords::new(&settings(port), Arc::new(SystemClock::new())).unwrap()
}

fn code<T>(result: Result<T, RecordError>) -> &'static str {
    result.err().map_or("", |error| error.code())
}

fn put(table: Table, number: u64, expires: UnixTime) -> Write {
    Write::Put {
        table,
        key: Box::from(number.to_be_bytes()),
        record: StoredRecord {
            value: Zeroizing::new(number.to_string().into_bytes()),
            expires,
        },
    }
}

fn writes(writes: impl IntoIterator<Item = Write>) -> Change {
    Change {
        conditions: Vec::new(),
        writes: writes.into_iter().collect(),
    }
}

#[tokio::test]
async fn records_in_redis_keep_to_the_contract() {
    let Some(redis) = Redis::start_durable() else {
        return;
    };
    let clock = ManualClock::new();
    let records = RedisRecords::new(&settings(redis.port()), Arc::new(clock.clone())).unwrap();
    suite::run(Arc::new(records), &clock).await;
    let keys = redis.command(&["KEYS", "*"]);
    assert_eq!(keys, "", "nothing is left of removed records");
}

/// ST3: several replicas compare and swap one record, and none of their changes is lost.
#[tokio::test]
async fn replicas_exclude_each_other() {
    let Some(redis) = Redis::start_durable() else {
        return;
    };
    let counter = || Box::from(*b"counter");
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let records = open(redis.port());
        tasks.spawn(async move {
            let mut won = 0_u64;
            while won < 25 {
                let before = records.get(LEFT, b"counter").await.unwrap();
                let before = before.map(|record| record.value);
                let number = before.as_ref().map_or(0, |value| {
                    String::from_utf8(value.to_vec()).unwrap().parse().unwrap()
                });
                let next: u64 = number + 1;
                let change = Change {
                    conditions: vec![Condition::Value {
                        table: LEFT,
                        key: counter(),
                        expected: before,
                    }],
                    writes: vec![Write::Put {
                        table: LEFT,
                        key: counter(),
                        record: StoredRecord {
                            value: Zeroizing::new(next.to_string().into_bytes()),
                            expires: UnixTime::from_secs(1 << 40),
                        },
                    }],
                };
                let outcome = records.commit(change).await.unwrap();
                won += u64::from(outcome == Outcome::Committed);
            }
        });
    }
    tasks.join_all().await;
    let last = open(redis.port()).get(LEFT, b"counter").await.unwrap();
    assert_eq!(*last.unwrap().value, b"100");
}

/// ST3: what was answered before Redis is killed is there afterwards, and no change is half there.
/// While it is away, everything fails in time, and works again by itself.
#[tokio::test]
async fn a_killed_server_loses_nothing() {
    let Some(mut redis) = Redis::start_durable() else {
        return;
    };
    let later = UnixTime::from_secs(1 << 40);
    let records = Arc::new(open(redis.port()));
    let mut answered = 0;
    for round in 1..=2 {
        let writer = Arc::clone(&records);
        let (progress, mut reached) = tokio::sync::mpsc::unbounded_channel();
        let writing = tokio::spawn(async move {
            for number in answered.. {
                let change = writes([put(LEFT, number, later), put(RIGHT, number, later)]);
                if writer.commit(change).await.is_err() {
                    return number;
                }
                let _ = progress.send(number);
            }
            answered
        });
        while reached.recv().await.unwrap() < 50 * round {}
        redis.kill();
        answered = writing.await.unwrap();
        let started = Instant::now();
        assert_eq!(code(records.count(LEFT).await), "records.redis");
        assert!(started.elapsed() < Duration::from_secs(2));

        redis.restart();
        let started = Instant::now();
        while records.connect().await.is_err() {
            assert!(started.elapsed() < TIMEOUT);
            tokio::task::yield_now().await;
        }
        let left = records.scan(LEFT, b"", None, 10_000).await.unwrap();
        assert_eq!(records.scan(RIGHT, b"", None, 10_000).await.unwrap(), left);
        let count = left.len() as u64;
        assert!(
            [answered, answered + 1].contains(&count),
            "{count} of {answered}"
        );
        answered = count;
    }
}

/// ST4: a restart of Redis between two requests fails no read.
#[tokio::test]
async fn a_read_after_a_restart_connects_again() {
    let Some(mut redis) = Redis::start_durable() else {
        return;
    };
    let records = open(redis.port());
    let record = put(LEFT, 1, UnixTime::from_secs(1 << 40));
    records.commit(writes([record])).await.unwrap();
    redis.kill();
    redis.restart();
    let read = records.get(LEFT, &1_u64.to_be_bytes()).await.unwrap();
    assert_eq!(*read.unwrap().value, b"1");
}

/// Everything fails after 2 s if the server accepts connections and does not answer.
#[tokio::test(start_paused = true)]
async fn a_silent_server_is_an_error_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let records = Arc::new(open(listener.local_addr().unwrap().port()));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let records = Arc::clone(&records);
        tasks.spawn(async move { code(records.get(LEFT, b"key").await) });
    }
    for code in tasks.join_all().await {
        assert_eq!(code, "records.redis");
    }
    assert!(started.elapsed() < Duration::from_secs(3));
}

/// ST3: a server that can lose records is refused until it is configured.
#[tokio::test]
async fn a_server_that_can_lose_records_is_refused() {
    let Some(redis) = Redis::start_durable() else {
        return;
    };
    let set = |name: &str, value: &str| {
        assert_eq!(redis.command(&["CONFIG", "SET", name, value]), "OK");
    };
    for (name, wrong, right, expected) in [
        ("appendonly", "no", "yes", "records.redis_durability"),
        (
            "appendfsync",
            "everysec",
            "always",
            "records.redis_durability",
        ),
        ("appendfsync", "no", "always", "records.redis_durability"),
        (
            "maxmemory-policy",
            "allkeys-lru",
            "noeviction",
            "records.redis_eviction",
        ),
    ] {
        set(name, wrong);
        let refusing = open(redis.port());
        assert_eq!(code(refusing.connect().await), expected);
        let change = writes([put(LEFT, 1, UnixTime::from_secs(1 << 40))]);
        assert_eq!(code(refusing.commit(change).await), expected);
        let assuming = open(redis.port()).assume_durable();
        assert_eq!(code(assuming.connect().await), "");
        set(name, right);
        assert_eq!(code(open(redis.port()).connect().await), "");
    }
    assert_eq!(redis.command(&["DBSIZE"]), "0");
}

/// A user that cannot read the configuration is told so, and its operator can confirm the settings.
#[tokio::test]
async fn a_user_without_config_needs_a_confirmation() {
    let Some(redis) = Redis::start_durable() else {
        return;
    };
    let user = [
        "ACL", "SETUSER", "limited", "on", ">hunter2", "~*", "+@all", "-config",
    ];
    assert_eq!(redis.command(&user), "OK");
    let mut settings = settings(redis.port());
    settings.url = format!("redis://limited@127.0.0.1:{}", redis.port());
    settings.password = Some(Secret::new("hunter2"));
    let limited = || RedisRecords::new(&settings, Arc::new(SystemClock::new())).unwrap();
    assert_eq!(code(limited().connect().await), "records.redis_config");
    let records = limited().assume_durable();
    let change = writes([put(LEFT, 1, UnixTime::from_secs(1 << 40))]);
    assert_eq!(records.commit(change).await.unwrap(), Outcome::Committed);

    assert_eq!(
        redis.command(&["ACL", "SETUSER", "limited", "+config|get"]),
        "OK"
    );
    assert_eq!(code(limited().connect().await), "");

    settings.password = Some(Secret::new("wrong"));
    let rejected = RedisRecords::new(&settings, Arc::new(SystemClock::new())).unwrap();
    let error = rejected.connect().await.unwrap_err();
    assert_eq!(error.code(), "records.redis");
    assert!(!format!("{error} {error:?} {rejected:?}").contains("wrong"));
}

/// Scans and sweeps of more records than one command handles.
#[tokio::test]
async fn many_records_are_scanned_and_swept() {
    let Some(redis) = Redis::start_durable() else {
        return;
    };
    let clock = ManualClock::new();
    let records = RedisRecords::new(&settings(redis.port()), Arc::new(clock.clone())).unwrap();
    let later = clock.now().saturating_add(Duration::from_secs(1));
    let total = MAX_SWEPT as u64 + 10;
    let change = writes((0..total).map(|number| {
        // Every other record has expired.
        let expires = if number % 2 == 0 { clock.now() } else { later };
        put(LEFT, number, expires)
    }));
    records.commit(change).await.unwrap();
    let found = records.scan(LEFT, b"", None, 600).await.unwrap();
    let numbers: Vec<_> = found
        .iter()
        .map(|(key, _)| u64::from_be_bytes((**key).try_into().unwrap()))
        .collect();
    assert_eq!(
        numbers,
        (0..600).map(|index| 2 * index + 1).collect::<Vec<_>>()
    );
    clock.advance(Duration::from_secs(1));
    for left in [total, 10, 0] {
        assert_eq!(records.count(LEFT).await.unwrap(), left);
        records.sweep().await.unwrap();
    }
    assert_eq!(redis.command(&["DBSIZE"]), "0");
}

/// A record that another replica renews during a sweep stays.
#[tokio::test]
async fn a_sweep_spares_renewed_records() {
    let Some(redis) = Redis::start_durable() else {
        return;
    };
    let clock = ManualClock::new();
    let soon = clock.now();
    let later = soon.saturating_add(Duration::from_secs(60));
    let [one, other] = [(); 2]
        .map(|()| RedisRecords::new(&settings(redis.port()), Arc::new(clock.clone())).unwrap());
    for round in 0..100 {
        one.commit(writes([put(LEFT, round, soon)])).await.unwrap();
        let (swept, renewed) =
            tokio::join!(other.sweep(), one.commit(writes([put(LEFT, round, later)])));
        swept.unwrap();
        renewed.unwrap();
        let record = one.get(LEFT, &round.to_be_bytes()).await.unwrap();
        assert_eq!(record.map(|record| record.expires), Some(later), "{round}");
    }
}
