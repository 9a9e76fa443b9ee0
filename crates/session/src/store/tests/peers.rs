//! The sessions of an owner at other processes count for its limit.

use super::{
    process::{Process, process_with},
    *,
};

/// Processes that announce their sessions to each other, with three sessions per owner.
fn peers<const COUNT: usize>() -> [Process; COUNT] {
    let clock = Arc::new(ManualClock::default());
    clock.advance(Duration::from_secs(1_800_000_000));
    std::array::from_fn(|_| {
        process_with(&clock, Duration::from_secs(60), |settings| {
            settings.max_per_owner = 3
        })
    })
}

/// All processes learn what the others have recorded and announced.
fn exchange(processes: &[&Process]) {
    for process in processes {
        process.fixture.store.announce_opened();
        let ends = std::mem::take(&mut *process.journal.ends.lock());
        let announced = std::mem::take(&mut *process.journal.announced.lock());
        for other in processes
            .iter()
            .filter(|other| !std::ptr::eq(**other, *process))
        {
            ends.iter().for_each(|end| other.fixture.store.import(end));
            other.fixture.store.import_announced(&announced);
        }
    }
}

fn sessions(processes: &[&Process]) -> usize {
    processes
        .iter()
        .map(|process| process.fixture.store.len())
        .sum()
}

/// E9, E13: sessions at other processes count for the limit, and each process allows one.
#[test]
fn sessions_at_other_processes_count() {
    let [here, there] = peers();
    (0..3).for_each(|_| drop(here.open()));
    exchange(&[&here, &there]);
    let first = there.open();
    assert!(there.reasons().is_empty(), "each process allows one");

    exchange(&[&here, &there]);
    let second = there.open();
    assert_eq!(there.reasons(), [EndReason::Evicted]);
    assert_eq!(there.try_use(&first), Err(ResolveError::Ended));
    assert_eq!(there.try_use(&second), Ok(()));

    exchange(&[&here, &there]);
    drop(here.open());
    assert_eq!(
        here.reasons(),
        [EndReason::Evicted; 2],
        "the limit is reached again"
    );
    assert_eq!(sessions(&[&here, &there]), 3);
}

/// E13: a session that several processes serve counts once, so that an owner can use all its
/// sessions everywhere.
#[test]
fn a_session_counts_once() {
    let [here, there] = peers();
    let opened: Vec<_> = (0..3).map(|_| here.open()).collect();
    exchange(&[&here, &there]);
    for _ in 0..2 {
        for process in [&here, &there] {
            assert!(
                opened
                    .iter()
                    .all(|identifier| process.try_use(identifier).is_ok())
            );
            process.fixture.store.record_last_uses();
        }
        exchange(&[&here, &there]);
    }
    assert!(here.reasons().is_empty());
    assert!(there.reasons().is_empty());
    assert_eq!(here.fixture.store.len(), 3);
    assert_eq!(there.fixture.store.len(), 3);

    drop(there.open());
    assert_eq!(there.reasons(), [EndReason::Evicted]);
    exchange(&[&here, &there]);
    assert_eq!(here.reasons(), [EndReason::EndedElsewhere]);
}

/// E13: the documented error: processes that open sessions at once exceed the limit, and each new
/// session then ends two.
#[test]
fn the_limit_is_reached_again_after_a_burst() {
    let [one, two, three] = peers();
    let all = [&one, &two, &three];
    all.iter()
        .for_each(|process| (0..3).for_each(|_| drop(process.open())));
    exchange(&all);
    assert_eq!(sessions(&all), 9);
    for process in all.iter().cycle().take(9) {
        drop(process.open());
        exchange(&all);
    }
    assert!(sessions(&all) < 3 + all.len(), "{}", sessions(&all));
    assert!(all.iter().all(|process| !process.fixture.store.is_empty()));
}

/// E13: sessions that ended, and those of a process that is gone, do not count.
#[test]
fn sessions_that_are_gone_do_not_count() {
    let [here, there] = peers();
    let opened: Vec<_> = (0..3).map(|_| here.open()).collect();
    exchange(&[&here, &there]);
    opened
        .iter()
        .take(2)
        .for_each(|identifier| here.end(identifier));
    exchange(&[&here, &there]);
    (0..2).for_each(|_| drop(there.open()));
    assert!(there.reasons().is_empty());
    here.fixture.clock.advance(Duration::from_secs(90));
    drop(there.open());
    assert!(there.reasons().is_empty(), "it was not announced for 90 s");
}

/// E9, E13: an end of all sessions of an owner at one process ends those in the tables of others,
/// which tell the backend.
#[test]
fn the_end_of_a_scope_has_its_own_reason() {
    let [here, there] = peers();
    drop(there.open());
    here.fixture.clock.advance(Duration::from_secs(1));
    let ended = here
        .fixture
        .store
        .end_scope(crate::EndScope::Owner(ALICE), EndReason::Administrator);
    assert!(ended.ticket.is_done());
    assert!(
        ended.sessions.is_empty(),
        "the session is in the table of the other process"
    );
    exchange(&[&here, &there]);
    assert_eq!(there.reasons(), [EndReason::ScopeEndedElsewhere]);
}
