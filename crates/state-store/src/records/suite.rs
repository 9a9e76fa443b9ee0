//! What each store of records must do.

use std::{sync::Arc, time::Duration};

use portcullis_metadata::{Clock as _, UnixTime};
use portcullis_testkit::ManualClock;
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use super::{Change, Condition, MemoryRecords, Outcome, RecordStore, StoredRecord, Table, Write};

const GRANTS: Table = Table("suite_grants");
const CODES: Table = Table("suite_codes");
const LEASES: Table = Table("suite_leases");
const LIFETIME: Duration = Duration::from_secs(60);

type Store = Arc<dyn RecordStore>;

/// Runs all tests with an empty store.
pub(crate) async fn run(store: Store, clock: &ManualClock) {
    conditions_are_all_or_nothing(&store, clock).await;
    a_full_table_refuses(&store, clock).await;
    scans_are_ordered_and_limited(&store, clock).await;
    expired_records_are_absent(&store, clock).await;
    one_of_many_wins(&store, clock).await;
    large_records_are_refused(&store, clock).await;
    random_changes_are_those_in_memory(&store, clock).await;
}

fn record(value: &[u8], expires: UnixTime) -> StoredRecord {
    StoredRecord {
        value: Zeroizing::new(value.to_vec()),
        expires,
    }
}

fn put(table: Table, key: &[u8], record: StoredRecord) -> Write {
    let key = key.into();
    Write::Put { table, key, record }
}

fn delete(table: Table, key: &[u8]) -> Write {
    let key = key.into();
    Write::Delete { table, key }
}

fn value(table: Table, key: &[u8], expected: Option<&[u8]>) -> Condition {
    Condition::Value {
        table,
        key: key.into(),
        expected: expected.map(|expected| Zeroizing::new(expected.to_vec())),
    }
}

async fn commit<const C: usize, const W: usize>(
    store: &Store,
    conditions: [Condition; C],
    writes: [Write; W],
) -> Outcome {
    let change = Change {
        conditions: conditions.into(),
        writes: writes.into(),
    };
    store.commit(change).await.unwrap()
}

async fn read(store: &Store, table: Table, key: &[u8]) -> Option<Vec<u8>> {
    let record = store.get(table, key).await.unwrap()?;
    Some(record.value.to_vec())
}

async fn conditions_are_all_or_nothing(store: &Store, clock: &ManualClock) {
    let later = clock.now().saturating_add(LIFETIME);
    let binary = [0, 255, b'\r', b'\n', b'"'];
    assert_eq!(store.get(GRANTS, &binary).await.unwrap(), None);
    let first = commit(
        store,
        [value(GRANTS, &binary, None)],
        [
            put(GRANTS, &binary, record(&binary, later)),
            put(CODES, b"code", record(b"", later)),
        ],
    );
    assert_eq!(first.await, Outcome::Committed);
    assert_eq!(
        store.get(GRANTS, &binary).await.unwrap(),
        Some(record(&binary, later))
    );
    assert_eq!(read(store, CODES, b"code").await.unwrap(), b"");

    for wrong in [
        value(GRANTS, &binary, None),
        value(GRANTS, &binary, Some(b"other")),
        value(GRANTS, b"missing", Some(b"")),
        value(CODES, &binary, Some(&binary)),
        value(CODES, b"code", None),
    ] {
        let right = value(GRANTS, &binary, Some(&binary));
        let writes = [
            put(GRANTS, b"new", record(b"new", later)),
            delete(CODES, b"code"),
        ];
        assert_eq!(
            commit(store, [right, wrong], writes).await,
            Outcome::Conflict
        );
        assert_eq!(read(store, GRANTS, b"new").await, None);
        assert!(read(store, CODES, b"code").await.is_some());
    }

    let right = value(GRANTS, &binary, Some(&binary));
    let writes = [
        put(GRANTS, &binary, record(b"second", later)),
        put(GRANTS, &binary, record(b"third", later)),
        delete(CODES, b"code"),
        delete(CODES, b"missing"),
    ];
    assert_eq!(commit(store, [right], writes).await, Outcome::Committed);
    assert_eq!(read(store, GRANTS, &binary).await.unwrap(), b"third");
    assert_eq!(read(store, CODES, b"code").await, None);
    assert_eq!(store.count(GRANTS).await.unwrap(), 1);
    assert_eq!(store.count(CODES).await.unwrap(), 0);
    assert_eq!(commit(store, [], []).await, Outcome::Committed);
    let cleared = commit(store, [], [delete(GRANTS, &binary)]);
    assert_eq!(cleared.await, Outcome::Committed);
}

async fn a_full_table_refuses(store: &Store, clock: &ManualClock) {
    let later = clock.now().saturating_add(LIFETIME);
    let below = || Condition::Below {
        table: CODES,
        max: 2,
    };
    for (key, outcome) in [
        (b"1", Outcome::Committed),
        (b"2", Outcome::Committed),
        (b"3", Outcome::Full),
    ] {
        let added = commit(store, [below()], [put(CODES, key, record(b"", later))]);
        assert_eq!(added.await, outcome);
    }
    assert_eq!(store.count(CODES).await.unwrap(), 2);
    assert_eq!(read(store, CODES, b"3").await, None);
    // The first condition that does not hold decides.
    let missing = || value(CODES, b"3", Some(b""));
    assert_eq!(commit(store, [below(), missing()], []).await, Outcome::Full);
    assert_eq!(
        commit(store, [missing(), below()], []).await,
        Outcome::Conflict
    );
    let writes = [delete(CODES, b"1"), delete(CODES, b"2")];
    assert_eq!(commit(store, [], writes).await, Outcome::Committed);
}

async fn scans_are_ordered_and_limited(store: &Store, clock: &ManualClock) {
    let later = clock.now().saturating_add(LIFETIME);
    let keys: [&[u8]; 7] = [b"a", b"b", b"b\0", b"b\x01x", b"ba", b"b\xff\xff", b"c"];
    for key in keys.iter().rev() {
        let added = commit(store, [], [put(GRANTS, key, record(key, later))]);
        assert_eq!(added.await, Outcome::Committed);
    }
    let scan = async |prefix: &[u8], after: Option<&[u8]>, limit| {
        let records = store.scan(GRANTS, prefix, after, limit).await.unwrap();
        for (key, found) in &records {
            assert_eq!(*found, record(key, later));
        }
        records
            .into_iter()
            .map(|(key, _)| key.into_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(scan(b"", None, 100).await, keys);
    assert_eq!(scan(b"b", None, 100).await, keys[1..6]);
    assert_eq!(scan(b"b", None, 2).await, keys[1..3]);
    assert_eq!(scan(b"b", Some(b"b"), 2).await, keys[2..4]);
    assert_eq!(scan(b"b", Some(b"b\0zz"), 2).await, keys[3..5]);
    assert_eq!(scan(b"b", Some(b"a"), 100).await, keys[1..6]);
    assert_eq!(scan(b"b", Some(b"c"), 100).await.len(), 0);
    assert_eq!(scan(b"b\xff", None, 100).await, keys[5..6]);
    assert_eq!(scan(b"b\xff\xff", None, 100).await, keys[5..6]);
    assert_eq!(scan(b"d", None, 100).await.len(), 0);
    assert_eq!(scan(b"", None, 0).await.len(), 0);
    let unused = store.scan(Table("suite_unused"), b"", None, 1).await;
    assert_eq!(unused.unwrap(), []);
    for key in keys {
        commit(store, [], [delete(GRANTS, key)]).await;
    }
}

async fn expired_records_are_absent(store: &Store, clock: &ManualClock) {
    let soon = clock.now().saturating_add(LIFETIME);
    let later = soon.saturating_add(LIFETIME);
    let writes = [
        put(CODES, b"soon", record(b"soon", soon)),
        put(CODES, b"later", record(b"later", later)),
        put(CODES, b"renewed", record(b"before", soon)),
        put(CODES, b"shortened", record(b"before", later)),
        put(CODES, b"renewed", record(b"after", later)),
        put(CODES, b"shortened", record(b"after", soon)),
    ];
    assert_eq!(commit(store, [], writes).await, Outcome::Committed);
    clock.advance(LIFETIME - Duration::from_millis(1));
    store.sweep().await.unwrap();
    assert_eq!(read(store, CODES, b"soon").await.unwrap(), b"soon");
    assert_eq!(store.count(CODES).await.unwrap(), 4);

    clock.advance(Duration::from_millis(1));
    assert_eq!(read(store, CODES, b"soon").await, None);
    assert_eq!(read(store, CODES, b"shortened").await, None);
    let found = store.scan(CODES, b"", None, 100).await.unwrap();
    let keys: Vec<_> = found.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, [b"later".as_slice(), b"renewed"]);
    let first = store.scan(CODES, b"", None, 1).await.unwrap();
    assert_eq!(&*first[0].0, b"later");
    assert_eq!(store.count(CODES).await.unwrap(), 4);
    let stale = commit(store, [value(CODES, b"soon", Some(b"soon"))], []);
    assert_eq!(stale.await, Outcome::Conflict);

    store.sweep().await.unwrap();
    assert_eq!(store.count(CODES).await.unwrap(), 2);
    assert_eq!(read(store, CODES, b"renewed").await.unwrap(), b"after");
    let absent = commit(
        store,
        [value(CODES, b"soon", None)],
        [put(CODES, b"soon", record(b"again", later))],
    );
    assert_eq!(absent.await, Outcome::Committed);
    clock.advance(LIFETIME);
    store.sweep().await.unwrap();
    assert_eq!(store.count(CODES).await.unwrap(), 0);
}

async fn one_of_many_wins(store: &Store, clock: &ManualClock) {
    let later = clock.now().saturating_add(LIFETIME);
    commit(store, [], [put(LEASES, b"lease", record(b"0", later))]).await;
    for round in 0..10_u8 {
        let mut tasks = JoinSet::new();
        for task in 0..20_u8 {
            let store = Arc::clone(store);
            tasks.spawn(async move {
                let current = if round == 0 {
                    b"0".to_vec()
                } else {
                    vec![round]
                };
                let conditions = [value(LEASES, b"lease", Some(&current))];
                let winner = [task];
                let writes = [
                    put(LEASES, b"lease", record(&[round + 1], later)),
                    put(LEASES, b"winner", record(&winner, later)),
                ];
                (task, commit(&store, conditions, writes).await)
            });
        }
        let outcomes = tasks.join_all().await;
        let winners: Vec<_> = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == Outcome::Committed)
            .collect();
        assert_eq!(winners.len(), 1, "{outcomes:?}");
        assert_eq!(
            read(store, LEASES, b"winner").await.unwrap(),
            [winners[0].0]
        );
    }
}

async fn large_records_are_refused(store: &Store, clock: &ManualClock) {
    let later = clock.now().saturating_add(LIFETIME);
    let large = vec![0; super::MAX_VALUE];
    let fits = commit(store, [], [put(LEASES, b"large", record(&large, later))]);
    assert_eq!(fits.await, Outcome::Committed);
    assert_eq!(read(store, LEASES, b"large").await.unwrap(), large);
    let key = vec![b'k'; super::MAX_KEY + 1];
    let too_large = vec![0; super::MAX_VALUE + 1];
    for write in [
        put(LEASES, &key, record(b"", later)),
        put(LEASES, b"large", record(&too_large, later)),
    ] {
        let change = Change {
            conditions: Vec::new(),
            writes: vec![write],
        };
        let refused = store.commit(change).await.unwrap_err();
        assert_eq!(refused.code(), "records.too_large");
    }
    for key in [b"large".as_slice(), b"lease", b"winner"] {
        commit(store, [], [delete(LEASES, key)]).await;
    }
}

/// Pseudo-random numbers (xorshift).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn table(&mut self) -> Table {
        [GRANTS, CODES][self.below(2) as usize]
    }

    fn key(&mut self) -> &'static [u8] {
        [b"".as_slice(), b"a", b"a\0", b"ab", b"\xff", b"\xff\xff"][self.below(6) as usize]
    }

    fn change(&mut self, now: UnixTime) -> Change {
        let conditions = (0..self.below(3)).map(|_| match self.below(6) {
            0 => Condition::Below {
                table: self.table(),
                max: self.below(6),
            },
            1..4 => value(self.table(), self.key(), None),
            number => value(self.table(), self.key(), Some(&[number as u8 - 4])),
        });
        let conditions = conditions.collect();
        let writes = (0..self.below(4)).map(|_| match self.below(4) {
            0 => delete(self.table(), self.key()),
            _ => {
                let expires = now.saturating_add(Duration::from_secs(self.below(4)));
                let record = record(&[self.below(2) as u8], expires);
                put(self.table(), self.key(), record)
            }
        });
        Change {
            conditions,
            writes: writes.collect(),
        }
    }
}

async fn random_changes_are_those_in_memory(store: &Store, clock: &ManualClock) {
    let memory = MemoryRecords::new(Arc::new(clock.clone()));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut outcomes = [0; 3];
    for step in 0..500 {
        let change = random.clone().change(clock.now());
        let outcome = memory.commit(change).await.unwrap();
        let change = random.change(clock.now());
        let found = store.commit(change).await.unwrap();
        assert_eq!(found, outcome, "step {step}");
        outcomes[outcome as usize] += 1;

        let (table, prefix) = (random.table(), random.key());
        let after = (random.below(2) == 0).then(|| random.key());
        let limit = random.below(5) as usize;
        assert_eq!(
            store.scan(table, prefix, after, limit).await.unwrap(),
            memory.scan(table, prefix, after, limit).await.unwrap(),
            "step {step}: {prefix:?} after {after:?}, {limit}"
        );
        assert_eq!(
            store.get(table, prefix).await.unwrap(),
            memory.get(table, prefix).await.unwrap()
        );
        assert_eq!(
            store.count(table).await.unwrap(),
            memory.count(table).await.unwrap()
        );
        clock.advance(Duration::from_millis(random.below(600)));
        if random.below(5) == 0 {
            store.sweep().await.unwrap();
            memory.sweep().await.unwrap();
        }
    }
    assert!(outcomes.iter().all(|times| *times > 20), "{outcomes:?}");
    clock.advance(LIFETIME);
    store.sweep().await.unwrap();
}
