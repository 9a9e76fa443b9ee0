//! Tests of the confirmation of ends: a DELETE is confirmed when its end is recorded, and never
//! before.

use super::{
    process::{Process, two},
    *,
};

fn fail(process: &Process, is_failing: bool) {
    process
        .journal
        .is_failing
        .store(is_failing, Ordering::SeqCst);
}

/// E9, E12: of two DELETEs in progress, neither is confirmed while nothing can be recorded, nor is
/// a later one.
#[test]
fn no_end_is_confirmed_without_a_record() {
    let (process, _) = two();
    let identifier = process.open();
    let first = process.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    let second = process.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    let store = &process.fixture.store;
    fail(&process, true);
    for session in [&first, &second, &first] {
        assert_eq!(
            confirmed(&mut store.end_and_record(session, EndReason::Deleted)),
            Some(false)
        );
    }
    assert_eq!(process.try_use(&identifier), Err(ResolveError::Ended));
    for _ in 0..2 {
        assert_eq!(
            confirmed(&mut process.record_known_end(&identifier)),
            Some(false)
        );
    }
    assert!(process.journal.ends.lock().is_empty());

    fail(&process, false);
    assert_eq!(
        confirmed(&mut process.record_known_end(&identifier)),
        Some(true)
    );
    assert_eq!(process.journal.ends.lock().len(), 1);
    assert_eq!(
        confirmed(&mut store.end_and_record(&second, EndReason::Deleted)),
        Some(true)
    );
    assert_eq!(
        confirmed(&mut process.record_known_end(&identifier)),
        Some(true)
    );
    assert_eq!(
        process.journal.ends.lock().len(),
        1,
        "a recorded end is not recorded again"
    );
}

/// E9, E12: a DELETE waits while the record of another one is pending.
#[test]
fn a_pending_record_confirms_nothing() {
    let (process, _) = two();
    let identifier = process.open();
    let session = process.fixture.find(ALICE, identifier.as_bytes()).unwrap();
    *process.journal.pending.lock() = Some(Vec::new());
    let mut first = process
        .fixture
        .store
        .end_and_record(&session, EndReason::Deleted);
    let mut second = process
        .fixture
        .store
        .end_and_record(&session, EndReason::Deleted);
    let mut third = process.record_known_end(&identifier);
    assert_eq!(
        [&mut first, &mut second, &mut third].map(confirmed),
        [None; 3]
    );

    let confirmations = process.journal.pending.lock().take().unwrap();
    confirmations
        .into_iter()
        .for_each(|confirmation| confirmation.confirm());
    assert_eq!(
        [&mut first, &mut second, &mut third].map(confirmed),
        [Some(true); 3]
    );
}

/// E9, E12: an end for another reason, and one that another process has recorded, is recorded
/// before a DELETE is confirmed: other processes may not know it.
#[test]
fn ends_for_other_reasons_are_recorded_as_well() {
    let (process, other) = two();
    let by_backend = process.open();
    let elsewhere = process.open();
    let by_floor = process.open();
    let idle = process.open();
    fail(&process, true);
    let in_use = process.fixture.find(ALICE, by_backend.as_bytes()).unwrap();
    drop(
        process
            .fixture
            .store
            .end(&in_use, EndReason::TransportClosed),
    );
    drop(in_use);
    other.end(&elsewhere);
    other.tell(&process);
    process.fixture.clock.advance(Duration::from_secs(30 * 60));
    assert_eq!(process.try_use(&idle), Err(ResolveError::Ended));
    assert_eq!(
        confirmed(&mut process.record_known_end(&by_backend)),
        Some(false)
    );
    assert_eq!(
        confirmed(&mut process.record_known_end(&elsewhere)),
        Some(false)
    );
    assert_eq!(confirmed(&mut process.record_known_end(&idle)), Some(false));
    drop(
        process
            .fixture
            .store
            .end_scope(crate::EndScope::Owner(ALICE), EndReason::Administrator),
    );
    assert_eq!(
        confirmed(&mut process.record_known_end(&by_floor)),
        Some(false)
    );

    fail(&process, false);
    assert_eq!(
        confirmed(&mut process.record_known_end(&by_floor)),
        Some(true)
    );
    process.tell(&other);
    for identifier in [by_backend, by_floor, idle] {
        assert_eq!(other.try_use(&identifier), Err(ResolveError::Ended));
    }
}

/// E9, E12: a session that has ended only by the view of one process ends in all of them before its
/// DELETE is confirmed.
#[test]
fn an_end_by_the_view_of_one_process_is_recorded() {
    let (process, other) = two();
    let identifier = process.open();
    process.fixture.clock.advance(Duration::from_secs(30 * 60));
    // This process does not know the session, and knows no use of it.
    assert_eq!(other.try_use(&identifier), Err(ResolveError::Ended));
    assert_eq!(
        confirmed(&mut other.record_known_end(&identifier)),
        Some(true)
    );
    assert_eq!(other.journal.ends.lock().len(), 1);
}

/// E7, E12: an identifier of another owner records nothing.
#[test]
fn another_owner_records_nothing() {
    let (process, _) = two();
    let identifier = process.open();
    let store = &process.fixture.store;
    let mut record =
        store.record_known_end(&process.fixture.target, MALLORY, identifier.as_bytes());
    assert_eq!(confirmed(&mut record), Some(true));
    assert!(process.journal.ends.lock().is_empty());
    assert_eq!(process.try_use(&identifier), Ok(()));
}

/// E12, E13: a session of a process with a wrong clock is unknown, its end takes no space, and a
/// floor in the future is lowered, so that all of them expire.
#[test]
fn nothing_is_created_in_the_future() {
    let (process, other) = two();
    let ahead = SessionStore::MAX_AHEAD.as_millis() as u64;
    let start = process.fixture.clock.now().as_millis();
    let identifier = process.open();
    // The clock of both processes is set back.
    process
        .fixture
        .clock
        .0
        .store(start - ahead - 1, Ordering::SeqCst);
    assert_eq!(other.try_use(&identifier), Err(ResolveError::Unknown));
    process
        .fixture
        .clock
        .0
        .store(start - ahead + 1, Ordering::SeqCst);
    assert_eq!(other.try_use(&identifier), Ok(()));

    let latest = UnixTime::from_millis(u64::MAX);
    let now = process.fixture.clock.now();
    let end = |created| crate::SessionEnd::Session {
        owner: crate::EndScope::Owner(ALICE).id(),
        session: [9; 16],
        created,
        extent: crate::EndExtent::ByOwner,
    };
    other.fixture.store.import(&end(latest));
    other.fixture.store.import(&end(
        now.saturating_add(SessionStore::MAX_AHEAD + Duration::from_millis(1))
    ));
    assert!(other.fixture.store.ends().is_empty());
    for scope in [
        None,
        Some(crate::EndScope::Owner(ALICE).id()),
        Some(crate::EndScope::Issuer(ISSUER).id()),
    ] {
        other.fixture.store.import(&crate::SessionEnd::Floor {
            scope,
            created: latest,
        });
    }
    let floors = other.fixture.store.ends();
    assert_eq!(floors.len(), 3);
    assert!(
        floors
            .iter()
            .all(|floor| floor.created() == now.saturating_add(SessionStore::MAX_AHEAD)),
        "{floors:?}"
    );
    let session = other.fixture.open(ALICE);
    assert!(
        session.created() <= now.saturating_add(SessionStore::MAX_AHEAD + Duration::from_millis(1))
    );
}
