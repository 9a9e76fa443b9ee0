//! Entries end with their token, keys and lifetime, and their number is bounded.

use std::cell::Cell;

use portcullis_metadata::{Issuer, Scopes};

use super::*;
use crate::principal::{Principal, PrincipalFields};

const START: u64 = 1_767_225_600;

fn now(seconds: u64) -> Now {
    Now {
        unix: UnixTime::from_secs(START + seconds),
        monotonic: Duration::from_secs(seconds),
    }
}

/// A verified token of this subject, which expires in these seconds.
fn token(subject: &str, expires: u64) -> VerifiedToken {
    VerifiedToken::new(Principal::new(PrincipalFields {
        issuer: Issuer::parse("https://issuer.example").unwrap(),
        subject: Some(subject.into()),
        client: None,
        scopes: Scopes::empty(),
        expires: UnixTime::from_secs(START + expires),
        valid_until: None,
        introspected_at: None,
        claims: crate::json_claims::JsonClaims::default(),
        subjectless_client: false,
    }))
}

fn keys(generation: u64) -> KeyState {
    KeyState {
        issuer: 0,
        generation,
    }
}

fn current(generation: u64) -> impl Fn(usize) -> Option<u64> {
    move |issuer| (issuer == 0).then_some(generation)
}

fn subject(found: Option<VerifiedToken>) -> Option<String> {
    found.and_then(|token| token.principal().subject().map(str::to_owned))
}

/// Inserts `text` as a token that expires after `expires` seconds.
fn insert(cache: &Cache, text: &str, expires: u64, at: u64) {
    cache.insert(
        cache.hash(text),
        keys(1),
        token(text, expires),
        MAX_LIFETIME,
        now(at),
        current(1),
    );
}

fn get(cache: &Cache, text: &str, at: u64) -> Option<String> {
    subject(cache.get(cache.hash(text), now(at), current(1)))
}

/// C11: an entry is removed when the token expires.
#[test]
fn an_entry_ends_with_its_token() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 0);
    assert_eq!(get(&cache, "a", 59).as_deref(), Some("a"));
    assert_eq!(get(&cache, "a", 60), None);
    assert_eq!(cache.len(), 0);
}

/// C11: an entry is removed after 5 min, by the monotonic clock.
#[test]
fn an_entry_is_used_for_five_minutes() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 3600, 0);
    assert_eq!(get(&cache, "a", 299).as_deref(), Some("a"));
    let wall_clock_set_back = Now {
        unix: UnixTime::from_secs(START),
        monotonic: Duration::from_secs(300),
    };
    assert!(
        cache
            .get(cache.hash("a"), wall_clock_set_back, current(1))
            .is_none()
    );
    assert_eq!(cache.len(), 0);
}

/// C11, D4: an entry is removed after its lifetime, by the monotonic clock.
#[test]
fn an_entry_is_used_for_its_lifetime() {
    let cache = Cache::new(100, 0).unwrap();
    let keep = |text, longest| {
        let longest = Duration::from_secs(longest);
        cache.insert(
            cache.hash(text),
            keys(1),
            token(text, 3600),
            longest,
            now(0),
            current(1),
        );
    };
    keep("a", 30);
    assert_eq!(get(&cache, "a", 29).as_deref(), Some("a"));
    assert_eq!(get(&cache, "a", 30), None);
    keep("for no time", 0);
    keep("for too long", 3600);
    assert_eq!(get(&cache, "for no time", 0), None);
    assert_eq!(get(&cache, "for too long", 300), None);
    assert_eq!(cache.len(), 0);
}

/// C11: entries of an older key generation are removed at lookup.
#[test]
fn an_entry_ends_with_its_keys() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 0);
    assert!(cache.get(cache.hash("a"), now(0), current(2)).is_none());
    assert_eq!(cache.len(), 0);
    assert_eq!(get(&cache, "a", 0), None);
}

/// C11: a verification that started before the keys changed is not inserted.
#[test]
fn a_late_entry_is_not_inserted() {
    let cache = Cache::new(100, 0).unwrap();
    cache.insert(
        cache.hash("a"),
        keys(1),
        token("a", 60),
        MAX_LIFETIME,
        now(0),
        current(2),
    );
    assert_eq!(cache.len(), 0);
}

/// C11: an expired token is not inserted.
#[test]
fn an_expired_token_is_not_inserted() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 60);
    assert_eq!(cache.len(), 0);
}

/// C11: the hash depends on the cache and its generation.
#[test]
fn hashes_are_bound_to_cache_and_generation() {
    let one = Cache::new(1, 1).unwrap();
    let same_generation = Cache::new(1, 1).unwrap();
    let mut next = Cache::new(1, 2).unwrap();
    next.hash_key = one.hash_key.clone();
    assert_eq!(one.hash("a"), one.hash("a"));
    assert_ne!(one.hash("a"), one.hash("b"));
    assert_ne!(one.hash("a"), same_generation.hash("a"));
    assert_ne!(one.hash("a"), next.hash("a"));
}

/// C11: a token has one entry, with the latest evidence.
#[test]
fn a_token_has_one_entry() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 0);
    cache.insert(
        cache.hash("a"),
        keys(1),
        token("again", 60),
        MAX_LIFETIME,
        now(1),
        current(1),
    );
    assert_eq!(cache.len(), 1);
    assert_eq!(get(&cache, "a", 1).as_deref(), Some("again"));
}

/// C11: the number of entries is bounded, and the newest entry is present.
#[test]
fn the_number_of_entries_is_bounded() {
    for entries in [1, 2, 3, 7, 64, 100, 1000] {
        let cache = Cache::new(entries, 0).unwrap();
        for count in 0..3 * entries {
            let text = count.to_string();
            insert(&cache, &text, 60, 0);
            assert_eq!(get(&cache, &text, 0), Some(text));
            assert!(cache.len() <= entries, "{} of {entries}", cache.len());
        }
    }
}

/// C11: a cache of 0 entries is always empty.
#[test]
fn a_cache_without_entries_is_empty() {
    let cache = Cache::new(0, 0).unwrap();
    insert(&cache, "a", 60, 0);
    assert_eq!(cache.len(), 0);
    assert_eq!(get(&cache, "a", 0), None);
}

/// Returns an entry that is valid for this many seconds.
fn entry(evict_at: u64) -> Entry {
    Entry {
        hash: TokenHash(u128::from(evict_at)),
        keys: keys(1),
        expires: UnixTime::from_secs(START + 60),
        evict_at: Duration::from_secs(evict_at),
        token: token("a", 60),
    }
}

/// Returns a shard whose entries become invalid in the order of their insertion.
fn shard(entries: u64) -> Shard {
    let mut shard = Shard::default();
    (1..=entries).for_each(|dies| drop(shard.insert(entry(dies), usize::MAX)));
    shard
}

/// C11: a full shard replaces its entries in the order of their insertion.
#[test]
fn the_oldest_entry_is_replaced_first() {
    let mut shard = shard(7);
    for dies in 8..=30 {
        let evicted = shard.insert(entry(dies), 7).unwrap();
        assert_eq!(evicted.evict_at, Duration::from_secs(dies - 7));
        assert!(!shard.index.contains_key(&evicted.hash));
        assert!(shard.index.contains_key(&TokenHash(u128::from(dies))));
        assert_consistent(&shard, 7);
    }
}

/// C11: a sweep preserves the order, and later entries are replaced last.
#[test]
fn a_sweep_keeps_the_order() {
    for turn in 0..7 {
        let mut shard = shard(7);
        (8..8 + turn).for_each(|dies| drop(shard.insert(entry(dies), 7)));
        // The oldest three entries are invalid.
        assert_eq!(shard.sweep(now(turn + 3), &current(1)), 3);
        assert_consistent(&shard, 4);
        (20..23).for_each(|dies| assert!(shard.insert(entry(dies), 7).is_none()));
        let left = (turn + 4..turn + 8).chain(20..23);
        for (count, expected) in left.enumerate() {
            let evicted = shard.insert(entry(30 + count as u64), 7).unwrap();
            assert_eq!(
                evicted.evict_at,
                Duration::from_secs(expected),
                "turn {turn}"
            );
            assert_consistent(&shard, 7);
        }
    }
}

/// C11: a sweep without invalid entries changes nothing.
#[test]
fn a_sweep_of_valid_entries_changes_nothing() {
    let mut shard = shard(3);
    shard.insert(entry(4), 3);
    assert_eq!(shard.sweep(now(1), &current(1)), 0);
    assert_eq!(shard.next_victim, 1);
    assert_consistent(&shard, 3);
}

/// Checks that the index matches the entries.
#[track_caller]
fn assert_consistent(shard: &Shard, entries: usize) {
    assert_eq!(shard.entries.len(), entries);
    assert_eq!(shard.index.len(), entries);
    for (position, entry) in shard.entries.iter().enumerate() {
        assert_eq!(shard.index[&entry.hash], position);
    }
}

/// C11: a removed entry leaves no gap.
#[test]
fn a_removed_entry_leaves_no_gap() {
    for position in 0..5 {
        let mut shard = shard(5);
        shard.next_victim = 5;
        shard.remove(position);
        assert_consistent(&shard, 4);
        assert!(shard.insert(entry(6), 5).is_none());
        assert_consistent(&shard, 5);
        assert!(shard.insert(entry(7), 5).is_some());
        assert_consistent(&shard, 5);
    }
}

/// C11: a renewed entry keeps its position, whether the shard is full or not.
#[test]
fn a_renewed_entry_keeps_its_position() {
    for capacity in [3, 100] {
        let mut shard = shard(3);
        for hash in [3, 1, 2, 2].map(TokenHash) {
            let renewed = Entry { hash, ..entry(200) };
            assert_eq!(shard.insert(renewed, capacity).unwrap().hash, hash);
            assert_consistent(&shard, 3);
        }
        assert!(
            shard
                .entries
                .iter()
                .all(|entry| entry.evict_at == Duration::from_secs(200))
        );
    }
}

/// C11: invalid entries that are not looked up are replaced, or removed by a sweep.
#[test]
fn invalid_entries_are_removed() {
    let cache = Cache::new(1, 0).unwrap();
    insert(&cache, "a", 10, 0);
    insert(&cache, "b", 60, 20);
    assert_eq!(cache.len(), 1);
    assert_eq!(get(&cache, "b", 20).as_deref(), Some("b"));

    let cache = Cache::new(1000, 0).unwrap();
    (0..50).for_each(|count| insert(&cache, &format!("short {count}"), 10, 0));
    (0..50).for_each(|count| insert(&cache, &format!("long {count}"), 60, 0));
    assert_eq!(cache.sweep(now(10), current(1)), 50);
    assert_eq!(cache.len(), 50);
    assert_eq!(get(&cache, "long 7", 10).as_deref(), Some("long 7"));
    assert_eq!(cache.sweep(now(10), current(2)), 50);
    assert_eq!(cache.len(), 0);
}

/// C11: a lookup compares with the issuer's current generation.
#[test]
fn the_generation_is_read_at_lookup() {
    let cache = Cache::new(10, 0).unwrap();
    let generation = Cell::new(1);
    let current = |_| Some(generation.get());
    cache.insert(
        cache.hash("a"),
        keys(1),
        token("a", 60),
        MAX_LIFETIME,
        now(0),
        current,
    );
    assert!(cache.get(cache.hash("a"), now(0), current).is_some());
    generation.set(2);
    assert!(cache.get(cache.hash("a"), now(0), current).is_none());
}
