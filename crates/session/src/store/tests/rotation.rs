//! Tests of rotation: new identifiers for other scopes, and rotated keys.

use std::{sync::Barrier, thread};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn scopes(text: &str) -> Scopes {
    Scopes::parse(text).unwrap()
}

impl Bench {
    fn open_with(&self, text: &str) -> Arc<Session> {
        let reservation = self.store.reserve(&self.target, ALICE, &scopes(text)).unwrap();
        Arc::clone(reservation.open(Box::from(*b"backend"), None).unwrap().session())
    }

    fn find_with(&self, identifier: &str, text: &str) -> Result<InUse, ResolveError> {
        self.store.resolve(&self.target, ALICE, &scopes(text), identifier.as_bytes())
    }

    /// Sends a request of Alice, and returns the identifier that its response carries, if any.
    fn request(&self, identifier: &str, text: &str) -> Option<Identifier> {
        self.find_with(identifier, text).unwrap().rotated_identifier()
    }
}

/// E8: with other scopes, the session gets one new identifier. Responses carry it until it is used, and both resolve.
#[test]
fn other_scopes_make_one_successor() {
    let bench = bench();
    let session = bench.open_with("a");
    let first = session.identifier();
    assert_eq!(bench.request(&first, "a"), None);

    let second = bench.request(&first, "a b").expect("a new identifier");
    assert_ne!(second, first);
    assert_eq!(session.identifier(), second);
    for text in ["a b", "a", "a b c"] {
        assert_eq!(bench.request(&first, text), Some(second.clone()), "pending, so that all answers carry the same");
    }
    for identifier in [&first, &second] {
        assert!(Arc::ptr_eq(bench.find(ALICE, identifier.as_bytes()).unwrap().session(), &session));
    }
    assert_eq!(bench.request(&second, "a b"), None, "made for these very scopes");
    assert_eq!(bench.store.len(), 1, "one session however many identifiers");
}

/// E8: the order and repetition of scopes have no effect.
#[test]
fn the_same_scopes_change_nothing() {
    let bench = bench();
    let first = bench.open_with("a b").identifier();
    assert_eq!(bench.request(&first, "b a a"), None);
    assert_eq!(bench.store.0.rotated.len(), 0);
}

/// E8: the old identifier resolves until 5 minutes after the first use of the new one. No sweep is needed.
#[test]
fn the_old_identifier_resolves_for_a_grace() {
    let bench = bench();
    let first = bench.open_with("a").identifier();
    let second = bench.request(&first, "b").unwrap();
    for _ in 0..10 {
        bench.clock.advance(20 * MINUTE);
        assert_eq!(bench.request(&first, "b"), Some(second.clone()), "the new identifier was not used yet");
    }
    drop(bench.find(ALICE, second.as_bytes()).unwrap());
    bench.clock.advance(5 * MINUTE - Duration::from_millis(1));
    drop(bench.find(ALICE, second.as_bytes()).unwrap());
    assert_eq!(bench.request(&first, "b"), Some(second.clone()));

    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(bench.find(ALICE, first.as_bytes()).unwrap_err(), ResolveError::Ended, "replayed after the grace");
    drop(bench.find(ALICE, second.as_bytes()).unwrap());
    assert!(bench.heard.take().is_empty(), "the session goes on");
}

/// E8: an identifier that no longer resolves does not keep its session alive.
#[test]
fn a_retired_identifier_does_not_touch() {
    let bench = bench();
    let first = bench.open_with("a").identifier();
    let second = bench.request(&first, "b").unwrap();
    drop(bench.find(ALICE, second.as_bytes()).unwrap());
    bench.clock.advance(29 * MINUTE);
    assert_eq!(bench.find(ALICE, first.as_bytes()).unwrap_err(), ResolveError::Ended);
    bench.clock.advance(MINUTE);
    assert_eq!(bench.find(ALICE, second.as_bytes()).unwrap_err(), ResolveError::Ended);
}

/// E8: a session gets at most one new identifier per minute.
#[test]
fn at_most_one_a_minute() {
    let bench = bench();
    let first = bench.open_with("a").identifier();
    let second = bench.request(&first, "b").unwrap();
    assert_eq!(bench.request(&second, "c"), None);
    bench.clock.advance(MINUTE - Duration::from_millis(1));
    assert_eq!(bench.request(&second, "c"), None);
    bench.clock.advance(Duration::from_millis(1));
    let third = bench.request(&second, "c").expect("a minute later");
    assert_eq!(bench.request(&first, "a"), Some(third.clone()), "answers carry the newest");
    assert_eq!(bench.request(&second, "c"), Some(third.clone()));
    for identifier in [&first, &second, &third] {
        drop(bench.find(ALICE, identifier.as_bytes()).unwrap());
    }
}

/// E8: the number of identifiers that resolve and are kept is bounded, even if scopes change often.
#[test]
fn identifiers_stay_few() {
    let bench = bench();
    let session = bench.open_with("a");
    let mut identifiers = vec![session.identifier()];
    for round in 0..40 {
        let newest = session.identifier();
        identifiers.push(bench.request(&newest, if round % 2 == 0 { "b" } else { "a" }).unwrap());
        bench.clock.advance(MINUTE);
        assert!(bench.store.0.rotated.len() <= 7, "{}", bench.store.0.rotated.len());
    }
    drop(bench.find(ALICE, session.identifier().as_bytes()).unwrap());
    let resolving = identifiers.iter().filter(|identifier| bench.find(ALICE, identifier.as_bytes()).is_ok()).count();
    assert_eq!(resolving, 6, "the newest, and those whose successors are in use for less than 5 min");

    bench.clock.advance(5 * MINUTE);
    bench.store.sweep();
    assert_eq!(bench.store.0.rotated.len(), 1);
    drop(bench.find(ALICE, session.identifier().as_bytes()).unwrap());
}

/// E7, E8: old and new identifiers are unknown for other owners, and their requests do not count as uses.
#[test]
fn a_successor_belongs_to_the_owner() {
    let bench = bench();
    let session = bench.open_with("a");
    let first = session.identifier();
    let second = bench.request(&first, "b").unwrap();
    for identifier in [&first, &second] {
        for stranger in [MALLORY, Owner::Anonymous] {
            let refused = bench.find(stranger, identifier.as_bytes()).unwrap_err();
            assert_eq!(refused, ResolveError::Unknown);
        }
    }
    for _ in 0..5 {
        bench.clock.advance(5 * MINUTE);
        assert_eq!(bench.request(&first, "b"), Some(second.clone()), "a stranger's try was no first use");
    }
}

/// E8, E9: no identifier of an ended session resolves, and it gets no new one.
#[test]
fn all_identifiers_end_with_the_session() {
    let bench = bench();
    let session = bench.open_with("a");
    let first = session.identifier();
    let second = bench.request(&first, "b").unwrap();
    let held = bench.find_with(&first, "b").unwrap();
    let other = bench.find_with(&second, "c").unwrap();
    bench.clock.advance(MINUTE);
    bench.store.end(&session, EndReason::Deleted);
    assert_eq!(held.rotated_identifier(), None);
    assert_eq!(other.rotated_identifier(), None);

    for identifier in [&first, &second] {
        assert_eq!(bench.find(ALICE, identifier.as_bytes()).unwrap_err(), ResolveError::Ended);
    }
    assert_eq!(bench.store.len(), 0);
    assert_eq!(bench.store.0.rotated.len(), 0);
    assert_eq!(bench.store.0.capacity.counts(), (0, 0));
}

/// E8, E9: a session whose first identifier no longer resolves still ends once, on demand and by time.
#[test]
fn a_renewed_session_ends_by_time() {
    let bench = bench();
    let session = bench.open_with("a");
    let second = bench.request(&session.identifier(), "b").unwrap();
    drop(bench.find(ALICE, second.as_bytes()).unwrap());
    bench.clock.advance(6 * MINUTE);
    assert_eq!(bench.store.sweep(), 0);
    bench.clock.advance(24 * MINUTE);
    assert_eq!(bench.store.sweep(), 1);
    assert!(matches!(bench.heard.take().as_slice(), [(_, EndReason::Idle)]));
    assert_eq!(bench.find(ALICE, second.as_bytes()).unwrap_err(), ResolveError::Ended);
    assert_eq!(bench.store.0.rotated.len(), 0);
}

/// E8: concurrent requests create one new identifier, and each response carries it.
#[test]
fn concurrent_requests_get_the_same_successor() {
    for _ in 0..50 {
        let bench = bench();
        let first = bench.open_with("a").identifier();
        let barrier = Barrier::new(4);
        let told: Vec<_> = thread::scope(|scope| {
            let spawned: Vec<_> = (0..4)
                .map(|number| {
                    let bench = &bench;
                    let barrier = &barrier;
                    let first = &first;
                    scope.spawn(move || {
                        let text = if number % 2 == 0 { "b" } else { "c" };
                        let held = bench.find_with(first, text).unwrap();
                        barrier.wait();
                        let told = held.rotated_identifier().unwrap();
                        bench.find(MALLORY, told.as_bytes()).unwrap_err();
                        told
                    })
                })
                .collect();
            spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(told.iter().all(|identifier| *identifier == told[0]));
        assert_eq!(bench.store.0.rotated.len(), 1, "those that were not taken are forgotten");
        drop(bench.find(ALICE, told[0].as_bytes()).unwrap());
    }
}

/// E8, E9: a new identifier does not resolve if the session ends at the same moment.
#[test]
fn nothing_is_left_of_a_session_that_ends_while_it_is_renewed() {
    for _ in 0..200 {
        let bench = bench();
        let session = bench.open_with("a");
        let held = bench.find_with(&session.identifier(), "b").unwrap();
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                held.rotated_identifier();
            });
            scope.spawn(|| {
                barrier.wait();
                bench.store.end(&session, EndReason::Deleted);
            });
        });
        assert_eq!(bench.store.len(), 0);
        assert_eq!(bench.store.0.rotated.len(), 0);
    }
}

/// E10, E12: when the key is rotated, sessions continue while their key is listed. New sessions get the new key.
#[test]
fn rotation_keeps_sessions() {
    let old = SessionKey::new(1, &[5; 32]);
    let new = SessionKey::new(2, &[6; 32]);
    let keys = |keys: &[&SessionKey]| SessionKeys::new(keys.iter().map(|key| (*key).clone())).unwrap();
    let bench = bench();
    let session = bench.open_with("a");
    let ended = bench.open_with("a");
    bench.store.end(&ended, EndReason::Deleted);
    bench.store.set_keys(keys(&[&old, &new]));
    assert!(bench.resolve(ALICE, &session).is_ok());

    bench.store.set_keys(keys(&[&new, &old]));
    assert!(bench.resolve(ALICE, &session).is_ok());
    assert_eq!(bench.resolve(ALICE, &ended).unwrap_err(), ResolveError::Ended, "its key is listed");
    let younger = bench.open_with("a");
    let renewed = bench.request(&session.identifier(), "b").unwrap();
    bench.store.set_keys(new.into());
    assert!(bench.resolve(ALICE, &younger).is_ok());

    for gone in [&renewed, &session.identifier(), &ended.identifier()] {
        assert_eq!(
            bench.find(ALICE, gone.as_bytes()).unwrap_err(),
            ResolveError::Unknown,
            "the key of the session is gone"
        );
    }
    bench.store.set_keys(old.into());
    assert!(bench.find(ALICE, renewed.as_bytes()).is_ok());
    assert_eq!(bench.resolve(ALICE, &younger).unwrap_err(), ResolveError::Unknown);
}

/// E8: the log hash of a session does not change with new identifiers and keys.
#[test]
fn the_log_hash_stays() {
    let bench = bench();
    let session = bench.open_with("a");
    let hash = session.log_hash();
    bench.request(&session.identifier(), "b").unwrap();
    bench.store.set_keys(SessionKey::new(9, &[9; 32]).into());
    assert_eq!(session.log_hash(), hash);
}
