//! Tests of ends: by idle time, by age, by a sweep and on demand.

use super::*;

/// E9: idle time counts from the last use, and is enforced without a sweep.
#[test]
fn idle_sessions_end_at_resolve() {
    let bench = bench();
    let session = bench.open(ALICE);
    for _ in 0..3 {
        bench.clock.advance(Duration::from_secs(30 * 60 - 1));
        drop(bench.resolve(ALICE, &session).unwrap());
    }
    bench.clock.advance(Duration::from_secs(30 * 60 - 1));
    drop(bench.hold(&session));
    bench.clock.advance(Duration::from_secs(30 * 60));
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), ResolveError::Ended);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Idle)]);
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), ResolveError::Ended);
    assert_eq!(bench.store.len(), 0);
    assert_eq!(bench.store.0.capacity.counts(), (0, 0));
}

/// E9: a session that ended while it was in use cannot be used again, also after the end of that use.
#[test]
fn an_ended_session_cannot_be_used_again() {
    let bench = bench();
    let session = bench.open(ALICE);
    let held = bench.hold(&session);
    bench.store.end(&session, EndReason::Deleted);
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), ResolveError::Ended);
    bench.clock.advance(Duration::from_secs(24 * 3600));
    drop(held);
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), ResolveError::Ended);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Deleted)]);
    assert_eq!(bench.store.len(), 0);
    assert_eq!(bench.store.0.capacity.counts(), (0, 0));
}

/// E9: a session in use does not go idle, and its idle time starts when the last use ends.
#[test]
fn a_session_in_use_does_not_go_idle() {
    let bench = bench();
    let session = bench.open(ALICE);
    let stream = bench.hold(&session);
    let request = bench.hold(&session);
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(bench.store.sweep(), 0);

    drop(request);
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(bench.store.sweep(), 0);
    assert!(bench.resolve(ALICE, &session).is_ok());

    bench.clock.advance(Duration::from_secs(3600));
    drop(stream);
    bench.clock.advance(Duration::from_secs(30 * 60) - Duration::from_millis(1));
    assert_eq!(bench.store.sweep(), 0);

    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(bench.store.sweep(), 1);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Idle)]);
}

/// E9: the lifetime also ends a session in use, once.
#[test]
fn a_session_in_use_ends_with_its_lifetime() {
    let bench = bench();
    let session = bench.open(ALICE);
    let stream = bench.hold(&session);
    bench.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(bench.store.sweep(), 1);

    drop(stream);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Lifetime)]);

    let session = bench.open(ALICE);
    let stream = bench.hold(&session);
    bench.clock.advance(Duration::from_secs(24 * 3600));
    drop(stream);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Lifetime)]);
    assert!(bench.store.is_empty());
}

/// E9: the lifetime ends a session that is used again and again.
#[test]
fn lifetime_ends_at_resolve() {
    let bench = bench();
    let session = bench.open(ALICE);
    for _ in 0..71 {
        bench.clock.advance(Duration::from_secs(20 * 60));
        drop(bench.resolve(ALICE, &session).unwrap());
    }
    bench.clock.advance(Duration::from_secs(20 * 60));
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), ResolveError::Ended);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Lifetime)]);
}

/// E9: a sweep ends the expired sessions, and no others.
#[test]
fn sweep_ends_expired_sessions() {
    let bench = bench();
    let old = bench.open(ALICE);
    bench.clock.advance(Duration::from_secs(20 * 60));
    let young = bench.open(MALLORY);
    bench.clock.advance(Duration::from_secs(10 * 60));
    assert_eq!(bench.store.sweep(), 1);
    assert_eq!(bench.heard.take(), [((*old.identifier()).into(), EndReason::Idle)]);
    drop(bench.resolve(MALLORY, &young).unwrap());
    assert_eq!(bench.store.sweep(), 0);
}

/// E9: one sweep ends a bounded number of sessions, and the next one continues.
#[test]
fn sweep_is_bounded() {
    let bench = bench_with(|settings| settings.max_per_owner = usize::MAX);
    let count = SWEEP_BATCH + 10;
    for _ in 0..count {
        bench.open(Owner::Anonymous);
    }
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(bench.store.sweep(), SWEEP_BATCH);
    assert_eq!(bench.store.sweep(), 10);
    assert_eq!(bench.store.sweep(), 0);
    assert_eq!(bench.heard.take().len(), count);
    assert_eq!(bench.store.0.capacity.counts(), (0, 0));
}

/// E9: a sweep finds one expired session among many others.
#[test]
fn sweep_is_not_held_up_by_living_sessions() {
    let bench = bench_with(|settings| settings.max_per_owner = usize::MAX);
    let over: Vec<_> = (0..10).map(|_| bench.open(ALICE)).collect();
    bench.clock.advance(Duration::from_secs(20 * 60));
    for _ in 0..4 * SWEEP_BATCH {
        bench.open(MALLORY);
    }
    bench.clock.advance(Duration::from_secs(10 * 60));
    assert_eq!(bench.store.sweep(), over.len());
}

/// E9: DELETE ends a session once. A second one, and one at another store, does nothing.
#[test]
fn end_is_heard_once() {
    let (bench, other) = (bench(), bench());
    let session = bench.open(ALICE);
    assert!(other.store.end(&session, EndReason::Deleted).is_none());
    drop(bench.resolve(ALICE, &session).unwrap());
    assert!(bench.store.end(&session, EndReason::Deleted).is_some_and(|ticket| ticket.is_done()));
    assert!(bench.store.end(&session, EndReason::TransportClosed).is_none());
    bench.clock.advance(Duration::from_secs(48 * 3600));
    bench.store.sweep();
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), ResolveError::Ended);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Deleted)]);
    assert!(other.heard.take().is_empty());
}

/// E9: a shutdown ends every session, including those in use.
#[test]
fn all_sessions_end() {
    let bench = bench();
    let _held = bench.open_in_use(ALICE);
    bench.open(MALLORY);
    for session in bench.store.all() {
        bench.store.end(&session, EndReason::Shutdown);
    }
    assert!(bench.heard.take().iter().all(|(_, reason)| *reason == EndReason::Shutdown));
    assert!(bench.store.is_empty());
}
