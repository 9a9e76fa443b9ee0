//! Tests of adoption: sessions that another process has opened, and ends that outlive their
//! sessions.

use std::{sync::Barrier, thread};

use super::{
    process::{Process, process, process_with, two},
    *,
};
use crate::scope::EndScope;

const MINUTE: Duration = Duration::from_secs(60);

/// E12: a session continues from its record. Afterwards, the identifier is found in the table.
#[test]
fn a_session_continues_elsewhere() {
    let (first, second) = two();
    let identifier = first.open();
    let adopted = second.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    assert_eq!(
        adopted.backend_id(),
        b"11111111-2222-3333-4444-555555555555"
    );
    assert_eq!(adopted.protocol_version(), Some("2025-11-25"));
    assert_eq!(adopted.target(), &target());
    assert_eq!(adopted.identifier(), identifier.clone());
    assert!(adopted.owner() == ALICE);

    let original = first.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    assert_eq!(adopted.log_hash(), original.log_hash());
    assert_eq!(adopted.created(), original.created());
    let again = second.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    assert!(Arc::ptr_eq(adopted.session(), again.session()));

    for stranger in [MALLORY, Owner::Anonymous] {
        assert_eq!(
            second
                .fixture
                .find(stranger, identifier.as_bytes())
                .unwrap_err(),
            ResolveError::Unknown
        );
    }
}

/// E12: concurrent first uses, by different identifiers of one session, adopt one session.
#[test]
fn concurrent_first_uses_adopt_one_session() {
    for _ in 0..50 {
        let (first, second) = two();
        let old = first.open();
        let wide = Scopes::parse("wide").unwrap();
        let in_use = first
            .fixture
            .store
            .resolve(&target(), ALICE, &wide, old.as_bytes())
            .unwrap();
        let identifiers = [old, in_use.rotated_identifier().unwrap()];
        let barrier = Barrier::new(4);
        let adopted: Vec<InUse> = thread::scope(|scope| {
            let spawned: Vec<_> = (0..4)
                .map(|number| {
                    let fixture = &second.fixture;
                    let barrier = &barrier;
                    let identifier = &identifiers[number % 2];
                    scope.spawn(move || {
                        barrier.wait();
                        fixture.find(ALICE, identifier.as_bytes()).unwrap()
                    })
                })
                .collect();
            spawned
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(
            adopted
                .iter()
                .all(|other| Arc::ptr_eq(other.session(), adopted[0].session()))
        );
        assert_eq!(second.fixture.store.len(), 1);
        assert_eq!(second.fixture.store.0.capacity.counts(), (1, 1));
        second.fixture.store.end(&adopted[0], EndReason::Deleted);
        drop(adopted);
        assert_eq!(second.fixture.store.len(), 0);
        assert_eq!(second.fixture.store.0.rotated.len(), 0);
        assert_eq!(second.fixture.store.0.capacity.counts(), (0, 0));
    }
}

/// E12: a session is adopted within the idle timeout of its last recorded use, or of its creation
/// if there is none.
#[test]
fn idle_time_counts_from_the_last_known_use() {
    let (first, second) = two();
    let unused = first.open();
    let used = first.open();
    first.fixture.clock.advance(20 * MINUTE);
    assert_eq!(first.try_use(&used), Ok(()));
    first.fixture.store.record_last_uses();
    first.tell(&second);
    first.fixture.clock.advance(10 * MINUTE);
    assert_eq!(second.try_use(&unused), Err(ResolveError::Ended));
    assert_eq!(second.try_use(&used), Ok(()));
    let third = process(&first.fixture.clock, Duration::ZERO);
    assert_eq!(
        third.try_use(&used),
        Err(ResolveError::Ended),
        "it knows of no use"
    );
}

/// E12: each last use is recorded once. That of a session in use is recorded each time.
#[test]
fn last_uses_are_recorded_in_batches() {
    let (first, _) = two();
    let idle = first.open();
    let held = first.open();
    let _held = first.fixture.find(ALICE, held.as_bytes()).unwrap();
    let batch = || {
        first.fixture.store.record_last_uses();
        std::mem::take(&mut *first.journal.last_uses.lock()).len()
    };
    assert_eq!(batch(), 2);

    first.fixture.clock.advance(MINUTE);
    assert_eq!(batch(), 1);
    first.fixture.clock.advance(MINUTE);
    assert_eq!(first.try_use(&idle), Ok(()));
    assert_eq!(batch(), 2);

    first.end(&idle);
    drop(first.fixture.store.record_all());
    assert_eq!(first.journal.last_uses.lock().len(), 1);
    assert_eq!(first.journal.ends.lock().len(), 2, "the end, twice");
}

/// E12: a process releases a session that is idle here and used by another process. That one ends
/// it.
#[test]
fn a_session_ends_where_it_was_used_last() {
    let clock = Arc::new(ManualClock::default());
    clock.advance(Duration::from_secs(1_800_000_000));
    let first = process(&clock, MINUTE);
    let second = process(&clock, MINUTE);
    let identifier = first.open();
    clock.advance(20 * MINUTE);
    assert_eq!(second.try_use(&identifier), Ok(()));

    second.fixture.store.record_last_uses();
    second.tell(&first);
    clock.advance(11 * MINUTE);
    assert_eq!(first.fixture.store.sweep(), 1);
    assert_eq!(first.fixture.store.len(), 0, "released, and not ended");
    assert_eq!(
        first.fixture.ended.take().len(),
        0,
        "released, and not ended"
    );
    assert_eq!(
        first.try_use(&identifier),
        Ok(()),
        "it can be used here again"
    );

    for process in [&first, &second] {
        process.fixture.store.record_last_uses();
    }
    first.tell(&second);
    second.tell(&first);
    clock.advance(21 * MINUTE);
    assert_eq!(second.fixture.store.sweep(), 1);
    assert_eq!(second.fixture.ended.take().len(), 0);

    clock.advance(10 * MINUTE);
    assert_eq!(first.fixture.store.sweep(), 1);
    assert_eq!(first.reasons(), [EndReason::Idle]);
    assert_eq!(second.try_use(&identifier), Err(ResolveError::Ended));
}

/// E9, E12: a session that is idle here and used by another process is released for a new one, and
/// does not end.
#[test]
fn a_session_that_is_used_elsewhere_is_not_evicted() {
    let clock = Arc::new(ManualClock::default());
    clock.advance(Duration::from_secs(1_800_000_000));
    let alone = |settings: &mut SessionSettings| settings.max_per_owner = 1;
    let first = process_with(&clock, MINUTE, alone);
    let second = process_with(&clock, MINUTE, alone);
    let identifier = first.open();
    clock.advance(20 * MINUTE);
    assert_eq!(second.try_use(&identifier), Ok(()));

    second.fixture.store.record_last_uses();
    second.tell(&first);
    clock.advance(11 * MINUTE);
    first.open();
    assert!(first.reasons().is_empty());
    assert!(first.journal.ends.lock().is_empty());
    assert_eq!(first.fixture.store.len(), 1);
    assert_eq!(first.fixture.store.0.capacity.counts(), (1, 1));
    assert_eq!(second.try_use(&identifier), Ok(()));
}

/// E12: the lifetime counts from the creation time in the record.
#[test]
fn the_lifetime_is_that_of_the_record() {
    let (first, second) = two();
    let identifier = first.open();
    for _ in 0..70 {
        first.fixture.clock.advance(20 * MINUTE);
        assert_eq!(first.try_use(&identifier), Ok(()));
    }
    first.fixture.store.record_last_uses();
    first.tell(&second);
    let held = second.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    first.fixture.clock.advance(40 * MINUTE);
    drop(held);
    assert_eq!(second.reasons(), [EndReason::Lifetime]);
    assert_eq!(second.try_use(&identifier), Err(ResolveError::Ended));
}

/// E12: an imported end ends a session in the table, and one that is in no table.
#[test]
fn an_end_elsewhere_is_an_end_here() {
    let (first, second) = two();
    let known = first.open();
    let unknown = first.open();
    let held = second.fixture.find(ALICE, known.as_bytes()).unwrap();
    for identifier in [&known, &unknown] {
        first.end(identifier);
    }
    first.tell(&second);
    assert!(held.has_ended());

    drop(held);
    assert_eq!(second.reasons(), [EndReason::EndedElsewhere]);
    assert!(
        second.journal.ends.lock().is_empty(),
        "it is not recorded again"
    );
    for identifier in [&known, &unknown] {
        assert_eq!(second.try_use(identifier), Err(ResolveError::Ended));
    }
}

/// E8, E12: when the grace period is over at one process, the old identifier has ended at all, and
/// the session continues.
#[test]
fn a_retired_identifier_is_retired_elsewhere() {
    let (first, second) = two();
    let old = first.open();
    let wide = Scopes::parse("wide").unwrap();
    let successor = |process: &Process| {
        process
            .fixture
            .store
            .resolve(&target(), ALICE, &wide, old.as_bytes())
            .unwrap()
            .rotated_identifier()
            .unwrap()
    };
    let new = successor(&first);
    assert_eq!(successor(&second), new, "all processes make the same one");
    assert_eq!(first.try_use(&new), Ok(()));

    first.fixture.clock.advance(5 * MINUTE);
    assert_eq!(
        second.try_use(&old),
        Ok(()),
        "its successor was not used here"
    );
    first.fixture.store.sweep();
    first.tell(&second);
    for process in [&first, &second] {
        assert_eq!(process.try_use(&old), Err(ResolveError::Ended));
        assert_eq!(process.try_use(&new), Ok(()));
    }
    let restarted = process(&first.fixture.clock, Duration::ZERO);
    drop(first.fixture.store.record_all());
    first.tell(&restarted);
    assert_eq!(restarted.try_use(&old), Err(ResolveError::Ended));
    assert_eq!(restarted.try_use(&new), Ok(()));
}

/// E9, E12: an adopted session evicts the owner's least recently used one, which stays ended. At
/// the total limit, it is rejected and does not end.
#[test]
fn adoption_needs_capacity() {
    let clock = Arc::new(ManualClock::default());
    let limit = |max_total: usize| {
        process_with(&clock, Duration::ZERO, |settings| {
            (settings.max_per_owner, settings.max_total) = (2, max_total);
        })
    };
    let first = limit(5);
    let second = limit(3);
    let [one, two, three]: [Identifier; 3] = [first.open(), first.open(), {
        let session = first.fixture.open(MALLORY);
        session.identifier()
    }];
    let own = second.open();
    for identifier in [&one, &two] {
        assert_eq!(second.try_use(identifier), Ok(()));
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(second.reasons(), [EndReason::Evicted]);
    assert_eq!(second.try_use(&own), Err(ResolveError::Ended));
    assert_eq!(second.journal.ends.lock().len(), 1);

    second.fixture.open(Owner::Anonymous);
    let full = || second.fixture.find(MALLORY, three.as_bytes()).map(drop);
    assert_eq!(
        full(),
        Err(ResolveError::Capacity(ReservationError::TotalLimit))
    );
    second.end(&one);
    assert_eq!(full(), Ok(()));
}

/// E12: a backend identifier that does not fit stays in memory.
#[test]
fn a_long_backend_identifier_stays_in_memory() {
    let (first, second) = two();
    let open = |length: usize| {
        let opened = first
            .fixture
            .reserve(ALICE)
            .unwrap()
            .open(vec![b'x'; length].into(), None)
            .unwrap();
        (opened.is_sealed(), opened.identifier())
    };
    let ((fits, longest), (too_long, kept)) = (
        open(Session::MAX_BACKEND_ID),
        open(Session::MAX_BACKEND_ID + 1),
    );
    assert!(fits);
    assert!(!too_long);
    assert!(longest.len() <= 512);
    assert_eq!(
        first
            .fixture
            .find(ALICE, kept.as_bytes())
            .unwrap()
            .backend_id()
            .len(),
        Session::MAX_BACKEND_ID + 1
    );
    assert_eq!(second.try_use(&longest), Ok(()));
    assert_eq!(second.try_use(&kept), Err(ResolveError::Ended));

    first.end(&kept);
    assert!(first.journal.ends.lock().is_empty(), "it continues nowhere");
    assert_eq!(first.try_use(&kept), Err(ResolveError::Ended));
    assert!(first.is_ended_by_owner(ALICE, &kept));
}

/// E12: a process that does not know all ends adopts no session. Other owners cannot see the
/// difference.
#[test]
fn an_incomplete_process_continues_nothing() {
    let (first, second) = two();
    let identifier = first.open();
    second.journal.is_incomplete.store(true, Ordering::SeqCst);
    let own = second.open();
    assert_eq!(second.try_use(&identifier), Err(ResolveError::NotReady));
    assert_eq!(second.try_use(&own), Ok(()));
    assert_eq!(
        second
            .fixture
            .find(MALLORY, identifier.as_bytes())
            .unwrap_err(),
        ResolveError::Unknown
    );
    second.journal.is_incomplete.store(false, Ordering::SeqCst);
    assert_eq!(second.try_use(&identifier), Ok(()));
}

/// E12: if an owner ends many sessions, the owner's older ones end in all processes, and no other
/// owner's.
#[test]
fn an_overflow_ends_older_sessions_of_the_owner() {
    let (first, second) = two();
    let mallorys = first.fixture.open(MALLORY);
    let old = first.open();
    let mut last = first.open();
    assert_eq!(second.try_use(&old), Ok(()));

    for _ in 0..3 {
        first.end(&last);
        last = first.open();
    }
    assert_eq!(first.reasons(), [EndReason::Deleted; 3]);

    first.end(&last);
    assert_eq!(first.reasons(), [EndReason::Overflow, EndReason::Deleted]);
    first.tell(&second);
    for process in [&first, &second] {
        assert_eq!(process.try_use(&old), Err(ResolveError::Ended));
        assert!(process.fixture.resolve(MALLORY, &mallorys).is_ok());
    }
    let next = first.open();
    assert_eq!(first.try_use(&next), Ok(()));
    assert_eq!(second.try_use(&next), Ok(()));
}

/// E12: all sessions of a scope end, in a table or not. Those opened later do not, even by a clock
/// that is behind.
#[test]
fn scopes_end_at_once() {
    let (first, second) = two();
    let known = first.open();
    let mallorys = first.fixture.open(MALLORY);
    let scope = EndScope::Owner(ALICE);
    assert!(
        first
            .fixture
            .store
            .end_scope(scope, EndReason::Administrator)
            .ticket
            .is_done()
    );
    assert_eq!(first.reasons(), [EndReason::Administrator]);

    first.tell(&second);
    assert_eq!(second.try_use(&known), Err(ResolveError::Ended));
    assert!(second.fixture.resolve(MALLORY, &mallorys).is_ok());
    let here = first.open();
    let there = second.open();
    for process in [&first, &second] {
        assert_eq!(process.try_use(&here), Ok(()));
        assert_eq!(process.try_use(&there), Ok(()));
    }
    let Owner::Subject { issuer, .. } = ALICE else {
        unreachable!()
    };
    drop(
        first
            .fixture
            .store
            .end_scope(EndScope::Issuer(issuer), EndReason::Administrator),
    );
    first.tell(&second);
    for process in [&first, &second] {
        for identifier in [&here, &there] {
            assert_eq!(process.try_use(identifier), Err(ResolveError::Ended));
        }
        assert!(process.fixture.store.is_empty());
    }
}

/// E12: a session does not continue with another upstream, whether it is in the table or not.
#[test]
fn another_upstream_does_not_continue_a_session() {
    let (first, second) = two();
    let identifier = first.open();
    let moved = SessionTarget::new(target().resource().clone(), "http://127.0.0.1:2");
    for process in [&first, &second] {
        let found =
            process
                .fixture
                .store
                .resolve(&moved, ALICE, &Scopes::empty(), identifier.as_bytes());
        assert_eq!(found.unwrap_err(), ResolveError::Ended);
        assert_eq!(process.try_use(&identifier), Ok(()));
    }
}

/// E10, E12: a DELETE is remembered as such, by each identifier of the session, in all processes
/// that have the record, and by its owner alone. No other end is.
#[test]
fn an_end_by_the_owner_is_known_as_such() {
    let (first, second) = two();
    let deleted = first.open();
    let wide = Scopes::parse("wide").unwrap();
    let newer = first
        .fixture
        .store
        .resolve(&target(), ALICE, &wide, deleted.as_bytes())
        .unwrap()
        .rotated_identifier()
        .unwrap();
    let by_backend = first.open();
    let in_use = first.fixture.find(ALICE, by_backend.as_bytes()).unwrap();
    drop(first.fixture.store.end(&in_use, EndReason::TransportClosed));
    drop(in_use);
    let unused = first.open();
    assert!(!first.is_ended_by_owner(ALICE, &unused), "it continues");
    first.fixture.clock.advance(29 * MINUTE);
    first.end(&deleted);
    first.tell(&second);
    first.fixture.clock.advance(MINUTE);
    for process in [&first, &second] {
        for identifier in [&deleted, &newer, &by_backend, &unused] {
            assert_eq!(process.try_use(identifier), Err(ResolveError::Ended));
            assert!(!process.is_ended_by_owner(MALLORY, identifier));
        }
        for (identifier, is_by_owner) in [
            (&deleted, true),
            (&newer, true),
            (&by_backend, false),
            (&unused, false),
        ] {
            assert_eq!(process.is_ended_by_owner(ALICE, identifier), is_by_owner);
        }
    }
    // Later ends by the server, also of all sessions of the owner, change nothing.
    let by_administrator = first.open();
    let scope = EndScope::Subject {
        issuer: ALICE.issuer().unwrap(),
        subject: ALICE.subject().unwrap(),
    };
    drop(
        first
            .fixture
            .store
            .end_scope(scope, EndReason::Administrator),
    );
    assert_eq!(first.try_use(&by_administrator), Err(ResolveError::Ended));
    assert!(!first.is_ended_by_owner(ALICE, &by_administrator));
    assert!(first.is_ended_by_owner(ALICE, &deleted));
}
