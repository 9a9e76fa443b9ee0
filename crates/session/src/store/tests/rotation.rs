//! Tests of rotation: new identifiers for other scopes, and rotated keys.

use std::{sync::Barrier, thread};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn scopes(text: &str) -> Scopes {
    Scopes::parse(text).unwrap()
}

impl Fixture {
    fn open_with(&self, text: &str) -> Arc<Session> {
        let reservation = self
            .store
            .reserve(&self.target, ALICE, &scopes(text))
            .unwrap();
        Arc::clone(
            reservation
                .open(Box::from(*b"backend"), None)
                .unwrap()
                .session(),
        )
    }

    fn find_with(&self, identifier: &str, text: &str) -> Result<InUse, ResolveError> {
        self.store
            .resolve(&self.target, ALICE, &scopes(text), identifier.as_bytes())
    }

    /// Sends a request of Alice, and returns the identifier that its response carries, if any.
    fn request(&self, identifier: &str, text: &str) -> Option<Identifier> {
        self.find_with(identifier, text)
            .unwrap()
            .rotated_identifier()
    }
}

/// E8: with other scopes, the session gets one new identifier. Responses carry it until it is used,
/// and both resolve.
#[test]
fn other_scopes_make_one_successor() {
    let fixture = fixture();
    let session = fixture.open_with("a");
    let first = session.identifier();
    assert_eq!(fixture.request(&first, "a"), None);

    let second = fixture.request(&first, "a b").expect("a new identifier");
    assert_ne!(second, first);
    assert_eq!(session.identifier(), second);
    for text in ["a b", "a", "a b c"] {
        assert_eq!(
            fixture.request(&first, text),
            Some(second.clone()),
            "pending, so that all answers carry the same"
        );
    }
    for identifier in [&first, &second] {
        assert!(Arc::ptr_eq(
            fixture
                .find(ALICE, identifier.as_bytes())
                .unwrap()
                .session(),
            &session
        ));
    }
    assert_eq!(
        fixture.request(&second, "a b"),
        None,
        "made for these very scopes"
    );
    assert_eq!(
        fixture.store.len(),
        1,
        "one session however many identifiers"
    );
}

/// E8: the order and repetition of scopes have no effect.
#[test]
fn the_same_scopes_change_nothing() {
    let fixture = fixture();
    let first = fixture.open_with("a b").identifier();
    assert_eq!(fixture.request(&first, "b a a"), None);
    assert_eq!(fixture.store.0.rotated.len(), 0);
}

/// E8: the old identifier resolves until 5 minutes after the first use of the new one. No sweep is
/// needed.
#[test]
fn the_old_identifier_resolves_for_a_grace_period() {
    let fixture = fixture();
    let first = fixture.open_with("a").identifier();
    let second = fixture.request(&first, "b").unwrap();
    for _ in 0..10 {
        fixture.clock.advance(20 * MINUTE);
        assert_eq!(
            fixture.request(&first, "b"),
            Some(second.clone()),
            "the new identifier was not used yet"
        );
    }
    drop(fixture.find(ALICE, second.as_bytes()).unwrap());
    fixture.clock.advance(5 * MINUTE - Duration::from_millis(1));
    drop(fixture.find(ALICE, second.as_bytes()).unwrap());
    assert_eq!(fixture.request(&first, "b"), Some(second.clone()));

    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(
        fixture.find(ALICE, first.as_bytes()).unwrap_err(),
        ResolveError::Ended,
        "after the grace period"
    );
    drop(fixture.find(ALICE, second.as_bytes()).unwrap());
    assert!(fixture.ended.take().is_empty(), "the session goes on");
}

/// E8: an identifier that no longer resolves does not keep its session alive.
#[test]
fn a_retired_identifier_does_not_touch() {
    let fixture = fixture();
    let first = fixture.open_with("a").identifier();
    let second = fixture.request(&first, "b").unwrap();
    drop(fixture.find(ALICE, second.as_bytes()).unwrap());
    fixture.clock.advance(29 * MINUTE);
    assert_eq!(
        fixture.find(ALICE, first.as_bytes()).unwrap_err(),
        ResolveError::Ended
    );
    fixture.clock.advance(MINUTE);
    assert_eq!(
        fixture.find(ALICE, second.as_bytes()).unwrap_err(),
        ResolveError::Ended
    );
}

/// E8: a session gets at most one new identifier per minute.
#[test]
fn at_most_one_a_minute() {
    let fixture = fixture();
    let first = fixture.open_with("a").identifier();
    let second = fixture.request(&first, "b").unwrap();
    assert_eq!(fixture.request(&second, "c"), None);
    fixture.clock.advance(MINUTE - Duration::from_millis(1));
    assert_eq!(fixture.request(&second, "c"), None);
    fixture.clock.advance(Duration::from_millis(1));
    let third = fixture.request(&second, "c").expect("a minute later");
    assert_eq!(
        fixture.request(&first, "a"),
        Some(third.clone()),
        "answers carry the newest"
    );
    assert_eq!(fixture.request(&second, "c"), Some(third.clone()));
    for identifier in [&first, &second, &third] {
        drop(fixture.find(ALICE, identifier.as_bytes()).unwrap());
    }
}

/// E8: the number of identifiers that resolve and are kept is bounded, even if scopes change often.
#[test]
fn identifiers_stay_few() {
    let fixture = fixture();
    let session = fixture.open_with("a");
    let mut identifiers = vec![session.identifier()];
    for round in 0..40 {
        let newest = session.identifier();
        identifiers.push(
            fixture
                .request(&newest, if round % 2 == 0 { "b" } else { "a" })
                .unwrap(),
        );
        fixture.clock.advance(MINUTE);
        assert!(
            fixture.store.0.rotated.len() <= 7,
            "{}",
            fixture.store.0.rotated.len()
        );
    }
    drop(
        fixture
            .find(ALICE, session.identifier().as_bytes())
            .unwrap(),
    );
    let resolving = identifiers
        .iter()
        .filter(|identifier| fixture.find(ALICE, identifier.as_bytes()).is_ok())
        .count();
    assert_eq!(
        resolving, 6,
        "the newest, and those whose successors are in use for less than 5 min"
    );

    fixture.clock.advance(5 * MINUTE);
    fixture.store.sweep();
    assert_eq!(fixture.store.0.rotated.len(), 1);
    drop(
        fixture
            .find(ALICE, session.identifier().as_bytes())
            .unwrap(),
    );
}

/// E7, E8: old and new identifiers are unknown for other owners, and their requests do not count as
/// uses.
#[test]
fn a_successor_belongs_to_the_owner() {
    let fixture = fixture();
    let session = fixture.open_with("a");
    let first = session.identifier();
    let second = fixture.request(&first, "b").unwrap();
    for identifier in [&first, &second] {
        for stranger in [MALLORY, Owner::Anonymous] {
            let error = fixture.find(stranger, identifier.as_bytes()).unwrap_err();
            assert_eq!(error, ResolveError::Unknown);
        }
    }
    for _ in 0..5 {
        fixture.clock.advance(5 * MINUTE);
        assert_eq!(
            fixture.request(&first, "b"),
            Some(second.clone()),
            "a stranger's try was no first use"
        );
    }
}

/// E8, E9: no identifier of an ended session resolves, and it gets no new one.
#[test]
fn all_identifiers_end_with_the_session() {
    let fixture = fixture();
    let session = fixture.open_with("a");
    let first = session.identifier();
    let second = fixture.request(&first, "b").unwrap();
    let held = fixture.find_with(&first, "b").unwrap();
    let other = fixture.find_with(&second, "c").unwrap();
    fixture.clock.advance(MINUTE);
    fixture.store.end(&session, EndReason::Deleted);
    assert_eq!(held.rotated_identifier(), None);
    assert_eq!(other.rotated_identifier(), None);

    for identifier in [&first, &second] {
        assert_eq!(
            fixture.find(ALICE, identifier.as_bytes()).unwrap_err(),
            ResolveError::Ended
        );
    }
    assert_eq!(fixture.store.len(), 0);
    assert_eq!(fixture.store.0.rotated.len(), 0);
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}

/// E8, E9: a session whose first identifier no longer resolves still ends once, on demand and by
/// time.
#[test]
fn a_renewed_session_ends_by_time() {
    let fixture = fixture();
    let session = fixture.open_with("a");
    let second = fixture.request(&session.identifier(), "b").unwrap();
    drop(fixture.find(ALICE, second.as_bytes()).unwrap());
    fixture.clock.advance(6 * MINUTE);
    assert_eq!(fixture.store.sweep(), 0);
    fixture.clock.advance(24 * MINUTE);
    assert_eq!(fixture.store.sweep(), 1);
    assert!(matches!(
        fixture.ended.take().as_slice(),
        [(_, EndReason::Idle)]
    ));
    assert_eq!(
        fixture.find(ALICE, second.as_bytes()).unwrap_err(),
        ResolveError::Ended
    );
    assert_eq!(fixture.store.0.rotated.len(), 0);
}

/// E8: concurrent requests create one new identifier, and each response carries it.
#[test]
fn concurrent_requests_get_the_same_successor() {
    for _ in 0..50 {
        let fixture = fixture();
        let first = fixture.open_with("a").identifier();
        let barrier = Barrier::new(4);
        let told: Vec<_> = thread::scope(|scope| {
            let spawned: Vec<_> = (0..4)
                .map(|number| {
                    let fixture = &fixture;
                    let barrier = &barrier;
                    let first = &first;
                    scope.spawn(move || {
                        let text = if number % 2 == 0 { "b" } else { "c" };
                        let held = fixture.find_with(first, text).unwrap();
                        barrier.wait();
                        let told = held.rotated_identifier().unwrap();
                        fixture.find(MALLORY, told.as_bytes()).unwrap_err();
                        told
                    })
                })
                .collect();
            spawned
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(told.iter().all(|identifier| *identifier == told[0]));
        assert_eq!(
            fixture.store.0.rotated.len(),
            1,
            "those that were not taken are forgotten"
        );
        drop(fixture.find(ALICE, told[0].as_bytes()).unwrap());
    }
}

/// E8, E9: a new identifier does not resolve if the session ends at the same moment.
#[test]
fn nothing_is_left_of_a_session_that_ends_while_it_is_renewed() {
    for _ in 0..200 {
        let fixture = fixture();
        let session = fixture.open_with("a");
        let held = fixture.find_with(&session.identifier(), "b").unwrap();
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                held.rotated_identifier();
            });
            scope.spawn(|| {
                barrier.wait();
                fixture.store.end(&session, EndReason::Deleted);
            });
        });
        assert_eq!(fixture.store.len(), 0);
        assert_eq!(fixture.store.0.rotated.len(), 0);
    }
}

/// E10, E12: when the key is rotated, sessions continue while their key is listed. New sessions get
/// the new key.
#[test]
fn rotation_keeps_sessions() {
    let old = SessionKey::new(1, &[5; 32]);
    let new = SessionKey::new(2, &[6; 32]);
    let keys =
        |keys: &[&SessionKey]| SessionKeys::new(keys.iter().map(|key| (*key).clone())).unwrap();
    let fixture = fixture();
    let session = fixture.open_with("a");
    let ended = fixture.open_with("a");
    fixture.store.end(&ended, EndReason::Deleted);
    fixture.store.set_keys(keys(&[&old, &new]));
    assert!(fixture.resolve(ALICE, &session).is_ok());

    fixture.store.set_keys(keys(&[&new, &old]));
    assert!(fixture.resolve(ALICE, &session).is_ok());
    assert_eq!(
        fixture.resolve(ALICE, &ended).unwrap_err(),
        ResolveError::Ended,
        "its key is listed"
    );
    let younger = fixture.open_with("a");
    let renewed = fixture.request(&session.identifier(), "b").unwrap();
    fixture.store.set_keys(new.into());
    assert!(fixture.resolve(ALICE, &younger).is_ok());

    for gone in [&renewed, &session.identifier(), &ended.identifier()] {
        assert_eq!(
            fixture.find(ALICE, gone.as_bytes()).unwrap_err(),
            ResolveError::Unknown,
            "the key of the session is gone"
        );
    }
    fixture.store.set_keys(old.into());
    assert!(fixture.find(ALICE, renewed.as_bytes()).is_ok());
    assert_eq!(
        fixture.resolve(ALICE, &younger).unwrap_err(),
        ResolveError::Unknown
    );
}

/// E8: the log hash of a session does not change with new identifiers and keys.
#[test]
fn the_log_hash_stays() {
    let fixture = fixture();
    let session = fixture.open_with("a");
    let hash = session.log_hash();
    fixture.request(&session.identifier(), "b").unwrap();
    fixture.store.set_keys(SessionKey::new(9, &[9; 32]).into());
    assert_eq!(session.log_hash(), hash);
}
