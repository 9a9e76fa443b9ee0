use std::cell::Cell;

use portcullis_metadata::{Issuer, Scopes};

use super::*;
use crate::{Principal, principal::PrincipalFields};

const START: u64 = 1_767_225_600;

fn now(seconds: u64) -> Now {
    Now { unix: UnixTime::from_secs(START + seconds), monotonic: Duration::from_secs(seconds) }
}

fn token(subject: &str, expires: u64) -> VerifiedToken {
    VerifiedToken::new(Principal::new(PrincipalFields {
        issuer: Issuer::parse("https://issuer.example").unwrap(),
        subject: Some(subject.into()),
        client: None,
        scopes: Scopes::empty(),
        expires: UnixTime::from_secs(START + expires),
        valid_until: None,
        introspected_at: None,
        said: crate::said::Said::default(),
        subjectless_client: false,
    }))
}

fn keys(generation: u64) -> KeyState {
    KeyState { issuer: 0, generation }
}

fn present(generation: u64) -> impl Fn(usize) -> Option<u64> {
    move |issuer| (issuer == 0).then_some(generation)
}

fn subject(found: Option<VerifiedToken>) -> Option<String> {
    found.and_then(|token| token.principal().subject().map(str::to_owned))
}

/// Inserts `text` as a token that expires after `expires` seconds.
fn insert(cache: &Cache, text: &str, expires: u64, at: u64) {
    cache.insert(cache.fingerprint(text), keys(1), token(text, expires), MAX_LIFE, now(at), present(1));
}

fn get(cache: &Cache, text: &str, at: u64) -> Option<String> {
    subject(cache.get(cache.fingerprint(text), now(at), present(1)))
}

/// C11: an entry lives until the token's expiry and not a moment longer, and is then removed.
#[test]
fn an_entry_ends_with_its_token() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 0);
    assert_eq!(get(&cache, "a", 59).as_deref(), Some("a"));
    assert_eq!(get(&cache, "a", 60), None);
    assert_eq!(cache.len(), 0);
}

/// C11: an entry lives 5 min at most, by the monotonic clock, and is then removed.
#[test]
fn an_entry_lives_five_minutes() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 3600, 0);
    assert_eq!(get(&cache, "a", 299).as_deref(), Some("a"));
    let wall_clock_set_back = Now { unix: UnixTime::from_secs(START), monotonic: Duration::from_secs(300) };
    assert!(cache.get(cache.fingerprint("a"), wall_clock_set_back, present(1)).is_none());
    assert_eq!(cache.len(), 0);
}

/// C11, D4: an entry lives no longer than it is inserted for, by the monotonic clock.
#[test]
fn an_entry_lives_as_long_as_it_is_given() {
    let cache = Cache::new(100, 0).unwrap();
    let keep = |text, longest| {
        let longest = Duration::from_secs(longest);
        cache.insert(cache.fingerprint(text), keys(1), token(text, 3600), longest, now(0), present(1));
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

/// C11: with a new state of the issuer's keys every entry made under an earlier one is gone, and removed at lookup.
#[test]
fn an_entry_ends_with_its_keys() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 0);
    assert!(cache.get(cache.fingerprint("a"), now(0), present(2)).is_none());
    assert_eq!(cache.len(), 0);
    assert_eq!(get(&cache, "a", 0), None);
}

/// C11: a verification that began before the keys changed cannot slip in after they did.
#[test]
fn a_late_entry_is_not_taken() {
    let cache = Cache::new(100, 0).unwrap();
    cache.insert(cache.fingerprint("a"), keys(1), token("a", 60), MAX_LIFE, now(0), present(2));
    assert_eq!(cache.len(), 0);
}

/// C11: neither is a token that expired while it was verified.
#[test]
fn an_expired_token_is_not_taken() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 60);
    assert_eq!(cache.len(), 0);
}

/// C11: an entry counts for one configuration of one resource: the hash differs by generation and by cache.
#[test]
fn fingerprints_are_bound_to_cache_and_generation() {
    let (one, same_generation, mut next) =
        (Cache::new(1, 1).unwrap(), Cache::new(1, 1).unwrap(), Cache::new(1, 2).unwrap());
    next.key = one.key.clone();
    assert_eq!(one.fingerprint("a"), one.fingerprint("a"));
    assert_ne!(one.fingerprint("a"), one.fingerprint("b"));
    assert_ne!(one.fingerprint("a"), same_generation.fingerprint("a"));
    assert_ne!(one.fingerprint("a"), next.fingerprint("a"));
}

/// C11: the same token twice takes one place, with the later evidence.
#[test]
fn a_token_has_one_entry() {
    let cache = Cache::new(100, 0).unwrap();
    insert(&cache, "a", 60, 0);
    cache.insert(cache.fingerprint("a"), keys(1), token("again", 60), MAX_LIFE, now(1), present(1));
    assert_eq!(cache.len(), 1);
    assert_eq!(get(&cache, "a", 1).as_deref(), Some("again"));
}

/// C11: the bound holds, whatever it is, and the newest entry is always there.
#[test]
fn the_bound_holds() {
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

/// C11: a cache of no entries keeps none.
#[test]
fn no_entries_means_none() {
    let cache = Cache::new(0, 0).unwrap();
    insert(&cache, "a", 60, 0);
    assert_eq!(cache.len(), 0);
    assert_eq!(get(&cache, "a", 0), None);
}

/// A slot that dies after so many seconds.
fn slot(dies: u64) -> Slot {
    Slot {
        fingerprint: u128::from(dies),
        keys: keys(1),
        expires: UnixTime::from_secs(START + 60),
        dies: Duration::from_secs(dies),
        token: token("a", 60),
    }
}

/// A shard with entries that die in the order in which they came.
fn shard(entries: u64) -> Shard {
    let mut shard = Shard::default();
    (1..=entries).for_each(|dies| shard.push(slot(dies)));
    shard
}

/// C11: a full shard gives up its entries in the order in which they came.
#[test]
fn the_oldest_entry_goes_first() {
    let mut shard = shard(7);
    for dies in 8..=30 {
        let gone = shard.put(slot(dies), 7).unwrap();
        assert_eq!(gone.dies, Duration::from_secs(dies - 7));
        assert!(!shard.index.contains_key(&gone.fingerprint) && shard.index.contains_key(&u128::from(dies)));
        agree(&shard, 7);
    }
}

/// C11: so it does after a sweep, wherever the turn was, and what came after the sweep goes last.
#[test]
fn the_order_outlives_a_sweep() {
    for turn in 0..7 {
        let mut shard = shard(7);
        (8..8 + turn).for_each(|dies| drop(shard.put(slot(dies), 7)));
        // Of those that are there, the oldest three are dead.
        assert_eq!(shard.sweep(now(turn + 3), &present(1)), 3);
        agree(&shard, 4);
        (20..23).for_each(|dies| assert!(shard.put(slot(dies), 7).is_none()));
        let left = (turn + 4..turn + 8).chain(20..23);
        for (count, expected) in left.enumerate() {
            let gone = shard.put(slot(30 + count as u64), 7).unwrap();
            assert_eq!(gone.dies, Duration::from_secs(expected), "turn {turn}");
            agree(&shard, 7);
        }
    }
}

/// C11: a sweep that finds nothing dead changes nothing.
#[test]
fn a_sweep_of_the_living_changes_nothing() {
    let mut shard = shard(3);
    shard.put(slot(4), 3);
    assert_eq!(shard.sweep(now(1), &present(1)), 0);
    assert_eq!(shard.turn, 1);
    agree(&shard, 3);
}

/// The list and the table beside it.
#[track_caller]
fn agree(shard: &Shard, entries: usize) {
    assert_eq!((shard.slots.len(), shard.index.len()), (entries, entries));
    for (position, slot) in shard.slots.iter().enumerate() {
        assert_eq!(shard.index[&slot.fingerprint], position);
    }
}

/// C11: an entry that was found dead leaves its place to another, and no gap.
#[test]
fn a_removed_entry_leaves_no_gap() {
    for position in 0..5 {
        let mut shard = shard(5);
        shard.turn = 5;
        shard.remove(position);
        agree(&shard, 4);
        assert!(shard.put(slot(6), 5).is_none());
        agree(&shard, 5);
        assert!(shard.put(slot(7), 5).is_some());
        agree(&shard, 5);
    }
}

/// C11: what is put in twice stays in its place, whether the shard is full or not.
#[test]
fn an_entry_is_renewed_in_its_place() {
    for capacity in [3, 100] {
        let mut shard = shard(3);
        for fingerprint in [3, 1, 2, 2] {
            let renewed = Slot { fingerprint, ..slot(200) };
            assert_eq!(shard.put(renewed, capacity).unwrap().fingerprint, fingerprint);
            agree(&shard, 3);
        }
        assert!(shard.slots.iter().all(|slot| slot.dies == Duration::from_secs(200)));
    }
}

/// A shard has room for a number of entries from the first on, and does not grow until they are there.
#[test]
fn a_shard_begins_with_some_room() {
    let mut shard = Shard::default();
    assert_eq!((shard.slots.capacity(), shard.index.capacity()), (0, 0));
    shard.push(slot(1));
    let room = (shard.slots.capacity(), shard.index.capacity());
    assert!(room.0 == FIRST_ROOM && room.1 >= FIRST_ROOM, "{room:?}");
    (2..=FIRST_ROOM as u64).for_each(|dies| shard.push(slot(dies)));
    assert_eq!((shard.slots.capacity(), shard.index.capacity()), room);
}

/// The table takes the low half of a fingerprint for its hash, so that entries spread as the fingerprints do.
#[test]
fn the_table_spreads_by_the_low_half() {
    use std::hash::BuildHasher;

    let table = BuildHasherDefault::<LowHalf>::default();
    for (fingerprint, hash) in [(5, 5), ((9 << 64) | 7, 7), (u128::MAX, u64::MAX)] {
        assert_eq!(table.hash_one::<u128>(fingerprint), hash);
    }
    // Keys of another form would spread, too.
    let hash_of = |bytes: &[u8]| {
        let mut hasher = LowHalf::default();
        hasher.write(bytes);
        hasher.finish()
    };
    assert_eq!(hash_of(&[1, 2, 3]), 0x01_02_03);
    assert_eq!(hash_of(&[1, 0, 0, 0, 0, 0, 0, 0, 1]), 0);
}

/// C11: dead entries that nobody asks for again go in their turn, or all in a sweep.
#[test]
fn dead_entries_are_cleared_away() {
    let cache = Cache::new(1, 0).unwrap();
    insert(&cache, "a", 10, 0);
    insert(&cache, "b", 60, 20);
    assert_eq!((cache.len(), get(&cache, "b", 20).as_deref()), (1, Some("b")));

    let cache = Cache::new(1000, 0).unwrap();
    (0..50).for_each(|count| insert(&cache, &format!("short {count}"), 10, 0));
    (0..50).for_each(|count| insert(&cache, &format!("long {count}"), 60, 0));
    assert_eq!(cache.sweep(now(10), present(1)), 50);
    assert_eq!((cache.len(), get(&cache, "long 7", 10).as_deref()), (50, Some("long 7")));
    assert_eq!(cache.sweep(now(10), present(2)), 50);
    assert_eq!(cache.len(), 0);
}

/// C11: a lookup reads the issuer's present generation when it is made, not when the entry was.
#[test]
fn generations_are_read_at_lookup() {
    let cache = Cache::new(10, 0).unwrap();
    let generation = Cell::new(1);
    let present = |_| Some(generation.get());
    cache.insert(cache.fingerprint("a"), keys(1), token("a", 60), MAX_LIFE, now(0), present);
    assert!(cache.get(cache.fingerprint("a"), now(0), present).is_some());
    generation.set(2);
    assert!(cache.get(cache.fingerprint("a"), now(0), present).is_none());
}
