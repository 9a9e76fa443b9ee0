//! Tests of evictions: new sessions at an owner's limit replace unused ones.

use std::{
    sync::{Barrier, atomic::AtomicUsize},
    thread,
};

use proptest::prelude::*;

use super::*;

fn at_most(max_per_owner: usize) -> Bench {
    bench_with(|settings| settings.max_per_owner = max_per_owner)
}

fn second() -> Duration {
    Duration::from_secs(1)
}

impl Bench {
    /// Opens sessions of Alice, one per second.
    fn open_in_turn<const COUNT: usize>(&self) -> [Arc<Session>; COUNT] {
        std::array::from_fn(|_| {
            self.clock.advance(second());
            self.open(ALICE)
        })
    }

    fn evicted(&self) -> Vec<Box<str>> {
        self.heard
            .take()
            .into_iter()
            .inspect(|(_, reason)| assert_eq!(*reason, EndReason::Evicted))
            .map(|(id, _)| id)
            .collect()
    }
}

/// E9: at the owner's limit, the least recently used session ends, and its identifier resolves as ended.
#[test]
fn the_least_recently_used_session_ends() {
    let bench = at_most(3);
    let [first, second, third] = bench.open_in_turn();
    bench.clock.advance(Duration::from_secs(1));
    drop(bench.hold(&first));
    bench.clock.advance(Duration::from_secs(1));
    let fourth = bench.open(ALICE);
    assert_eq!(bench.evicted(), [(*second.identifier()).into()]);
    assert_eq!(bench.resolve(ALICE, &second).unwrap_err(), ResolveError::Ended);

    bench.clock.advance(Duration::from_secs(1));
    bench.open(ALICE);
    assert_eq!(bench.evicted(), [(*third.identifier()).into()]);
    for session in [&first, &fourth] {
        drop(bench.hold(session));
    }
    assert_eq!(bench.store.len(), 3);
    assert_eq!(bench.store.0.capacity.counts(), (3, 1));
}

/// E9: the last use is the end of a request, not its beginning.
#[test]
fn a_session_is_used_until_its_last_use_ends() {
    let bench = at_most(2);
    let [first, second] = bench.open_in_turn();
    let held = bench.hold(&first);
    bench.clock.advance(Duration::from_secs(1));
    drop(bench.hold(&second));
    bench.clock.advance(Duration::from_secs(1));
    drop(held);
    bench.open(ALICE);
    assert_eq!(bench.evicted(), [(*second.identifier()).into()]);
}

/// E9: a session in use is not evicted. When all are in use, a new one is rejected.
#[test]
fn sessions_in_use_are_not_evicted() {
    let bench = at_most(3);
    let [first, second, third] = bench.open_in_turn();
    let held = [bench.hold(&first), bench.hold(&first), bench.hold(&third)];
    bench.open(ALICE);
    assert_eq!(bench.evicted(), [(*second.identifier()).into()]);

    let [one, other, _third] = held;
    drop(one);
    let fourth = bench.open_in_use(ALICE).unwrap();
    assert_eq!(bench.evicted().len(), 1);
    assert_eq!(bench.reserve(ALICE).unwrap_err(), ReservationError::OwnerLimit);

    bench.open(MALLORY);
    drop(other);
    bench.open(ALICE);
    assert_eq!(bench.evicted(), [(*first.identifier()).into()]);
    assert!(!fourth.has_ended());
    assert!(!third.has_ended());
}

/// E9: a reservation evicts no session. The session that is opened with it does.
#[test]
fn a_reservation_ends_nothing() {
    let bench = at_most(1);
    let session = bench.open(ALICE);
    for _ in 0..3 {
        drop(bench.reserve(ALICE).unwrap());
    }
    let held = bench.reserve(ALICE).unwrap().capacity_permit();
    assert_eq!(
        bench.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit,
        "its only session can make place for one"
    );

    drop(held);
    assert!(bench.heard.take().is_empty());
    drop(bench.resolve(ALICE, &session).unwrap());
}

/// E9: each reservation at the limit requires another unused session.
#[test]
fn reservations_require_a_session_each() {
    let bench = at_most(3);
    let [first, ..] = bench.open_in_turn::<3>();
    let held = bench.hold(&first);
    let reserved = [bench.reserve(ALICE).unwrap(), bench.reserve(ALICE).unwrap()];
    assert_eq!(bench.reserve(ALICE).unwrap_err(), ReservationError::OwnerLimit);

    let opened = reserved.map(|reserved| reserved.open(Box::default(), None).unwrap());
    assert_eq!(bench.evicted().len(), 2);
    assert_eq!(bench.store.len(), 3);
    assert_eq!(bench.store.0.capacity.counts(), (3, 1));
    assert_eq!(
        bench.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit,
        "the new ones are in use by their opening"
    );

    drop((opened, held));
    drop(bench.reserve(ALICE).unwrap());
}

/// E9: if all sessions were taken into use since the reservation, the new one is rejected, and the limit holds.
#[test]
fn a_session_is_refused_when_no_place_is_left() {
    struct Opened;

    impl SessionObserver for Opened {
        fn opened(&self, session: &Session) {
            assert_eq!(session.backend_id(), b"first");
        }

        fn ended(&self, _: &Session, _: EndReason) {
            unreachable!("no session ends");
        }
    }

    let mut settings = SessionSettings::new(SessionKey::random().unwrap());
    settings.max_per_owner = 1;
    let store = SessionStore::new(settings, Arc::new(HandClock::default()), Arc::new(Opened));
    let target = target();
    let scopes = Scopes::empty();
    let reserve = || store.reserve(&target, ALICE, &scopes);
    let identifier = reserve().unwrap().open(Box::from(*b"first"), None).unwrap().identifier();
    let reserved = reserve().unwrap();
    let held = store.resolve(&target, ALICE, &scopes, identifier.as_bytes()).unwrap();
    assert_eq!(reserved.open(Box::from(*b"second"), None).unwrap_err(), ReservationError::OwnerLimit);
    assert_eq!(store.len(), 1);
    assert_eq!(store.0.capacity.counts(), (1, 1));

    drop(held);
    drop(reserve().unwrap());
}

/// E9: an expired session is evicted first, and ends as expired.
#[test]
fn a_session_that_is_over_ends_by_its_time() {
    let bench = at_most(1);
    let session = bench.open(ALICE);
    bench.clock.advance(Duration::from_secs(30 * 60));
    bench.open(ALICE);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Idle)]);
}

/// E9: no session is evicted for another owner, or at the total limit. Anonymous sessions are never evicted.
#[test]
fn only_the_owner_at_the_limit_is_concerned() {
    let bench = bench_with(|settings| (settings.max_total, settings.max_per_owner) = (6, 2));
    let kept = [bench.open(MALLORY), bench.open(Owner::Anonymous), bench.open(Owner::Anonymous)];
    for _ in 0..10 {
        bench.clock.advance(second());
        bench.open(ALICE);
    }
    assert_eq!(bench.store.len(), 5);
    assert_eq!(bench.evicted().len(), 8);

    bench.open(Owner::Anonymous);
    for owner in [ALICE, MALLORY, Owner::Anonymous] {
        assert_eq!(bench.reserve(owner).unwrap_err(), ReservationError::TotalLimit);
    }
    for session in kept {
        drop(bench.hold(&session));
    }
    assert!(bench.heard.take().is_empty());
}

/// E9: the total includes both the new session and the evicted one, until the latter is removed.
#[test]
fn the_total_limit_holds_meanwhile() {
    let bench = bench_with(|settings| (settings.max_total, settings.max_per_owner) = (2, 1));
    bench.open(ALICE);
    let reserved = bench.reserve(ALICE).unwrap();
    assert_eq!(bench.reserve(MALLORY).unwrap_err(), ReservationError::TotalLimit);
    drop(reserved.open(Box::default(), None));
    bench.open(MALLORY);
    assert_eq!(bench.reserve(ALICE).unwrap_err(), ReservationError::TotalLimit);
}

/// E8, E9: no identifier of an evicted session resolves.
#[test]
fn all_identifiers_end() {
    let bench = at_most(1);
    let session = bench.open(ALICE);
    let scopes = Scopes::parse("other").unwrap();
    let first = session.identifier();
    let renewed =
        bench.store.resolve(&bench.target, ALICE, &scopes, first.as_bytes()).unwrap().rotated_identifier().unwrap();
    bench.open(ALICE);
    for identifier in [first, renewed] {
        assert_eq!(bench.find(ALICE, identifier.as_bytes()).unwrap_err(), ResolveError::Ended);
    }
    assert_eq!(bench.store.0.rotated.len(), 0);
}

proptest! {
    /// E9: after any sequence of uses and ends, the sessions that are not in use are evicted in the order of their last use.
    #[test]
    fn sessions_are_evicted_in_the_order_of_their_last_use(
        steps in proptest::collection::vec((0..24_usize, 0..8_u8), 0..120),
        held in proptest::collection::vec(0..24_usize, 0..4),
    ) {
        let bench = at_most(24);
        let mut order = Vec::from(bench.open_in_turn::<24>());
        for (at, step) in steps {
            bench.clock.advance(second());
            let session = order.remove(at % order.len());
            match step {
                0 => assert!(bench.store.end(&session, EndReason::Deleted).is_some()),
                1 => {
                    // An eviction in between moves entries in the heap.
                    order.insert(at % (order.len() + 1), session);
                    drop(bench.open(ALICE));
                    order.remove(0);
                    order.push(bench.store.all().into_iter().max_by_key(|session| session.last_used()).unwrap());
                }
                _ => {
                    drop(bench.hold(&session));
                    order.push(session);
                }
            }
            if order.len() < 24 {
                order.push(bench.open(ALICE));
            }
        }
        bench.heard.take();
        let _held: Vec<_> = held.iter().map(|at| bench.hold(&order[at % order.len()])).collect();
        let expected: Vec<Box<str>> =
            order.iter().filter(|session| !session.is_in_use()).map(|session| (*session.identifier()).into()).collect();
        let kept: Vec<_> = expected.iter().map_while(|_| bench.open_in_use(ALICE).ok()).collect();
        prop_assert_eq!(bench.evicted(), expected);
        prop_assert_eq!(kept.len() + held_count(&order), 24);
    }
}

fn held_count(sessions: &[Arc<Session>]) -> usize {
    sessions.iter().filter(|session| session.is_in_use()).count()
}

/// E9: while threads use sessions and open others at the limit, no session ends in use, each ends once, and the limit always
/// holds.
#[test]
fn uses_and_evictions_exclude_each_other() {
    let used: usize = (0..25).map(|_| use_and_open_concurrently()).sum();
    assert!(used > 0);
}

/// Returns how often a session was used.
fn use_and_open_concurrently() -> usize {
    const MAX: usize = 4;
    /// So few that tombstones suffice for the ended sessions of both threads. A floor would also end sessions in use.
    const OPENINGS: usize = 120;
    let bench = at_most(MAX);
    let newest: Vec<Mutex<Identifier>> = (0..MAX).map(|_| Mutex::new(bench.open(ALICE).identifier())).collect();
    let opened = AtomicUsize::new(MAX);
    let used = AtomicUsize::new(0);
    let running = AtomicUsize::new(2);
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for worker in 0..2 {
            let bench = &bench;
            let newest = &newest;
            let opened = &opened;
            let running = &running;
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for round in 0..OPENINGS {
                    if let Ok(session) = bench.open_in_use(ALICE) {
                        opened.fetch_add(1, Ordering::SeqCst);
                        *newest[(2 * round + worker) % MAX].lock().unwrap() = session.identifier();
                    }
                    assert!(bench.store.len() <= MAX + 2, "recorded before the evicted ones are removed");
                    bench.clock.advance(Duration::from_millis(1));
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for worker in 0..2 {
            let bench = &bench;
            let newest = &newest;
            let used = &used;
            let running = &running;
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for round in worker.. {
                    if running.load(Ordering::SeqCst) == 0 {
                        break;
                    }
                    let identifier = newest[round % MAX].lock().unwrap().clone();
                    let Ok(session) = bench.find(ALICE, identifier.as_bytes()) else { continue };
                    for _ in 0..3 {
                        assert!(!session.has_ended(), "it ended while it was in use");
                        thread::yield_now();
                    }
                    used.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    let opened = opened.into_inner();
    let used = used.into_inner();
    assert!(opened > MAX);

    let mut evicted = bench.evicted();
    assert_eq!(evicted.len(), opened - MAX);
    assert_eq!(bench.store.len(), MAX);
    evicted.sort_unstable();
    evicted.dedup();
    assert_eq!(evicted.len(), opened - MAX, "each ends once");
    assert_eq!(bench.store.0.capacity.counts(), (MAX, 1));

    for session in bench.store.all() {
        bench.store.end(&session, EndReason::Deleted);
    }
    assert_eq!(bench.store.0.capacity.counts(), (0, 0));
    used
}
