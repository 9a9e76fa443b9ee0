//! Tests of ends: by idle time, by age, by a sweep and on demand.

use super::*;

/// E9: idle time counts from the last use, and is enforced without a sweep.
#[test]
fn idle_sessions_end_at_resolve() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    for _ in 0..3 {
        fixture.clock.advance(Duration::from_secs(30 * 60 - 1));
        drop(fixture.resolve(ALICE, &session).unwrap());
    }
    fixture.clock.advance(Duration::from_secs(30 * 60 - 1));
    drop(fixture.hold(&session));
    fixture.clock.advance(Duration::from_secs(30 * 60));
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Idle)]
    );
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
    assert_eq!(fixture.store.len(), 0);
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}

/// E9: a session that ended while it was in use cannot be used again, also after the end of that
/// use.
#[test]
fn an_ended_session_cannot_be_used_again() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let held = fixture.hold(&session);
    fixture.store.end(&session, EndReason::Deleted);
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
    fixture.clock.advance(Duration::from_secs(24 * 3600));
    drop(held);
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Deleted)]
    );
    assert_eq!(fixture.store.len(), 0);
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}

/// E9: a session in use does not go idle, and its idle time starts when the last use ends.
#[test]
fn a_session_in_use_does_not_go_idle() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let stream = fixture.hold(&session);
    let request = fixture.hold(&session);
    fixture.clock.advance(Duration::from_secs(3600));
    assert_eq!(fixture.store.sweep(), 0);

    drop(request);
    fixture.clock.advance(Duration::from_secs(3600));
    assert_eq!(fixture.store.sweep(), 0);
    assert!(fixture.resolve(ALICE, &session).is_ok());

    fixture.clock.advance(Duration::from_secs(3600));
    drop(stream);
    fixture
        .clock
        .advance(Duration::from_secs(30 * 60) - Duration::from_millis(1));
    assert_eq!(fixture.store.sweep(), 0);

    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(fixture.store.sweep(), 1);
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Idle)]
    );
}

/// E9: the lifetime also ends a session in use, once.
#[test]
fn a_session_in_use_ends_with_its_lifetime() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let stream = fixture.hold(&session);
    fixture.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(fixture.store.sweep(), 1);

    drop(stream);
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Lifetime)]
    );

    let session = fixture.open(ALICE);
    let stream = fixture.hold(&session);
    fixture.clock.advance(Duration::from_secs(24 * 3600));
    drop(stream);
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Lifetime)]
    );
    assert!(fixture.store.is_empty());
}

/// E9: the lifetime ends a session that is used again and again.
#[test]
fn lifetime_ends_at_resolve() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    for _ in 0..71 {
        fixture.clock.advance(Duration::from_secs(20 * 60));
        drop(fixture.resolve(ALICE, &session).unwrap());
    }
    fixture.clock.advance(Duration::from_secs(20 * 60));
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Lifetime)]
    );
}

/// E9: a sweep ends the expired sessions, and no others.
#[test]
fn sweep_ends_expired_sessions() {
    let fixture = fixture();
    let old = fixture.open(ALICE);
    fixture.clock.advance(Duration::from_secs(20 * 60));
    let young = fixture.open(MALLORY);
    fixture.clock.advance(Duration::from_secs(10 * 60));
    assert_eq!(fixture.store.sweep(), 1);
    assert_eq!(
        fixture.ended.take(),
        [((*old.identifier()).into(), EndReason::Idle)]
    );
    drop(fixture.resolve(MALLORY, &young).unwrap());
    assert_eq!(fixture.store.sweep(), 0);
}

/// E9: one sweep ends a bounded number of sessions, and the next one continues.
#[test]
fn sweep_is_bounded() {
    let fixture = fixture_with(|settings| settings.max_per_owner = usize::MAX);
    let count = SWEEP_BATCH + 10;
    for _ in 0..count {
        fixture.open(Owner::Anonymous);
    }
    fixture.clock.advance(Duration::from_secs(3600));
    assert_eq!(fixture.store.sweep(), SWEEP_BATCH);
    assert_eq!(fixture.store.sweep(), 10);
    assert_eq!(fixture.store.sweep(), 0);
    assert_eq!(fixture.ended.take().len(), count);
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
}

/// E9: a sweep finds one expired session among many others.
#[test]
fn sweep_is_not_held_up_by_living_sessions() {
    let fixture = fixture_with(|settings| settings.max_per_owner = usize::MAX);
    let over: Vec<_> = (0..10).map(|_| fixture.open(ALICE)).collect();
    fixture.clock.advance(Duration::from_secs(20 * 60));
    for _ in 0..4 * SWEEP_BATCH {
        fixture.open(MALLORY);
    }
    fixture.clock.advance(Duration::from_secs(10 * 60));
    assert_eq!(fixture.store.sweep(), over.len());
}

/// E9: DELETE ends a session once. A second one, and one at another store, does nothing.
#[test]
fn end_is_heard_once() {
    let (fixture, other) = (fixture(), fixture());
    let session = fixture.open(ALICE);
    assert!(other.store.end(&session, EndReason::Deleted).is_none());
    drop(fixture.resolve(ALICE, &session).unwrap());
    assert!(
        fixture
            .store
            .end(&session, EndReason::Deleted)
            .is_some_and(|ticket| ticket.is_done())
    );
    assert!(
        fixture
            .store
            .end(&session, EndReason::TransportClosed)
            .is_none()
    );
    fixture.clock.advance(Duration::from_secs(48 * 3600));
    fixture.store.sweep();
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Deleted)]
    );
    assert!(other.ended.take().is_empty());
}

/// E9: a shutdown ends every session, including those in use.
#[test]
fn all_sessions_end() {
    let fixture = fixture();
    let _held = fixture.open_in_use(ALICE);
    fixture.open(MALLORY);
    for session in fixture.store.all() {
        fixture.store.end(&session, EndReason::Shutdown);
    }
    let reasons: Vec<_> = fixture
        .ended
        .take()
        .into_iter()
        .map(|(_, reason)| reason)
        .collect();
    assert_eq!(reasons, [EndReason::Shutdown; 2]);
    assert!(fixture.store.is_empty());
}
