//! Tests of evictions: new sessions at an owner's limit replace unused ones.

use std::{
    sync::{Barrier, atomic::AtomicUsize},
    thread,
};

use proptest::prelude::*;

use super::*;

fn at_most(max_per_owner: usize) -> Fixture {
    fixture_with(|settings| settings.max_per_owner = max_per_owner)
}

fn second() -> Duration {
    Duration::from_secs(1)
}

impl Fixture {
    /// Opens sessions of Alice, one per second.
    fn open_in_turn<const COUNT: usize>(&self) -> [Arc<Session>; COUNT] {
        std::array::from_fn(|_| {
            self.clock.advance(second());
            self.open(ALICE)
        })
    }

    fn evicted(&self) -> Vec<Box<str>> {
        self.ended
            .take()
            .into_iter()
            .inspect(|(_, reason)| assert_eq!(*reason, EndReason::Evicted))
            .map(|(id, _)| id)
            .collect()
    }
}

/// E9: at the owner's limit, the least recently used session ends, and its identifier resolves as
/// ended.
#[test]
fn the_least_recently_used_session_ends() {
    let fixture = at_most(3);
    let [first, second, third] = fixture.open_in_turn();
    fixture.clock.advance(Duration::from_secs(1));
    drop(fixture.hold(&first));
    fixture.clock.advance(Duration::from_secs(1));
    let fourth = fixture.open(ALICE);
    assert_eq!(fixture.evicted(), [(*second.identifier()).into()]);
    assert_eq!(
        fixture.resolve(ALICE, &second).unwrap_err(),
        ResolveError::Ended
    );

    fixture.clock.advance(Duration::from_secs(1));
    fixture.open(ALICE);
    assert_eq!(fixture.evicted(), [(*third.identifier()).into()]);
    for session in [&first, &fourth] {
        drop(fixture.hold(session));
    }
    assert_eq!(fixture.store.len(), 3);
    assert_eq!(fixture.store.0.capacity.counts(), (3, 1));
}

/// E9: the last use is the end of a request, not its beginning.
#[test]
fn a_session_is_used_until_its_last_use_ends() {
    let fixture = at_most(2);
    let [first, second] = fixture.open_in_turn();
    let held = fixture.hold(&first);
    fixture.clock.advance(Duration::from_secs(1));
    drop(fixture.hold(&second));
    fixture.clock.advance(Duration::from_secs(1));
    drop(held);
    fixture.open(ALICE);
    assert_eq!(fixture.evicted(), [(*second.identifier()).into()]);
}

/// E9: a session in use is not evicted. When all are in use, a new one is rejected.
#[test]
fn sessions_in_use_are_not_evicted() {
    let fixture = at_most(3);
    let [first, second, third] = fixture.open_in_turn();
    let held = [
        fixture.hold(&first),
        fixture.hold(&first),
        fixture.hold(&third),
    ];
    fixture.open(ALICE);
    assert_eq!(fixture.evicted(), [(*second.identifier()).into()]);

    let [one, other, _third] = held;
    drop(one);
    let fourth = fixture.open_in_use(ALICE).unwrap();
    assert_eq!(fixture.evicted().len(), 1);
    assert_eq!(
        fixture.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit
    );

    fixture.open(MALLORY);
    drop(other);
    fixture.open(ALICE);
    assert_eq!(fixture.evicted(), [(*first.identifier()).into()]);
    assert!(!fourth.has_ended());
    assert!(!third.has_ended());
}

/// E9: a reservation evicts no session. The session that is opened with it does.
#[test]
fn a_reservation_ends_nothing() {
    let fixture = at_most(1);
    let session = fixture.open(ALICE);
    for _ in 0..3 {
        drop(fixture.reserve(ALICE).unwrap());
    }
    let held = fixture.reserve(ALICE).unwrap().capacity_permit();
    assert_eq!(
        fixture.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit,
        "its only session can make place for one"
    );

    drop(held);
    assert!(fixture.ended.take().is_empty());
    drop(fixture.resolve(ALICE, &session).unwrap());
}

/// E9: each reservation at the limit requires another unused session.
#[test]
fn reservations_require_a_session_each() {
    let fixture = at_most(3);
    let [first, ..] = fixture.open_in_turn::<3>();
    let held = fixture.hold(&first);
    let reserved = [
        fixture.reserve(ALICE).unwrap(),
        fixture.reserve(ALICE).unwrap(),
    ];
    assert_eq!(
        fixture.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit
    );

    let opened = reserved.map(|reserved| reserved.open(Box::default(), None).unwrap());
    assert_eq!(fixture.evicted().len(), 2);
    assert_eq!(fixture.store.len(), 3);
    assert_eq!(fixture.store.0.capacity.counts(), (3, 1));
    assert_eq!(
        fixture.reserve(ALICE).unwrap_err(),
        ReservationError::OwnerLimit,
        "the new ones are in use by their opening"
    );

    drop((opened, held));
    drop(fixture.reserve(ALICE).unwrap());
}

/// E9: if all sessions were taken into use since the reservation, the new one is rejected, and the
/// limit holds.
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
    let store = SessionStore::builder(settings)
        .clock(Arc::new(ManualClock::default()))
        .observer(Arc::new(Opened))
        .build();
    let target = target();
    let scopes = Scopes::empty();
    let reserve = || store.reserve(&target, ALICE, &scopes);
    let identifier = reserve()
        .unwrap()
        .open(Box::from(*b"first"), None)
        .unwrap()
        .identifier();
    let reserved = reserve().unwrap();
    let held = store
        .resolve(&target, ALICE, &scopes, identifier.as_bytes())
        .unwrap();
    assert_eq!(
        reserved.open(Box::from(*b"second"), None).unwrap_err(),
        ReservationError::OwnerLimit
    );
    assert_eq!(store.len(), 1);
    assert_eq!(store.0.capacity.counts(), (1, 1));

    drop(held);
    drop(reserve().unwrap());
}

/// E9: an expired session is evicted first, and ends as expired.
#[test]
fn a_session_that_is_over_ends_by_its_time() {
    let fixture = at_most(1);
    let session = fixture.open(ALICE);
    fixture.clock.advance(Duration::from_secs(30 * 60));
    fixture.open(ALICE);
    assert_eq!(
        fixture.ended.take(),
        [((*session.identifier()).into(), EndReason::Idle)]
    );
}

/// E9: no session is evicted for another owner, or at the total limit. Anonymous sessions are never
/// evicted.
#[test]
fn only_the_owner_at_the_limit_is_concerned() {
    let fixture = fixture_with(|settings| (settings.max_total, settings.max_per_owner) = (6, 2));
    let kept = [
        fixture.open(MALLORY),
        fixture.open(Owner::Anonymous),
        fixture.open(Owner::Anonymous),
    ];
    for _ in 0..10 {
        fixture.clock.advance(second());
        fixture.open(ALICE);
    }
    assert_eq!(fixture.store.len(), 5);
    assert_eq!(fixture.evicted().len(), 8);

    fixture.open(Owner::Anonymous);
    for owner in [ALICE, MALLORY, Owner::Anonymous] {
        assert_eq!(
            fixture.reserve(owner).unwrap_err(),
            ReservationError::TotalLimit
        );
    }
    for session in kept {
        drop(fixture.hold(&session));
    }
    assert!(fixture.ended.take().is_empty());
}

/// E9: the total includes both the new session and the evicted one, until the latter is removed.
#[test]
fn the_total_limit_holds_meanwhile() {
    let fixture = fixture_with(|settings| (settings.max_total, settings.max_per_owner) = (2, 1));
    fixture.open(ALICE);
    let reserved = fixture.reserve(ALICE).unwrap();
    assert_eq!(
        fixture.reserve(MALLORY).unwrap_err(),
        ReservationError::TotalLimit
    );
    drop(reserved.open(Box::default(), None));
    fixture.open(MALLORY);
    assert_eq!(
        fixture.reserve(ALICE).unwrap_err(),
        ReservationError::TotalLimit
    );
}

/// E8, E9: no identifier of an evicted session resolves.
#[test]
fn all_identifiers_end() {
    let fixture = at_most(1);
    let session = fixture.open(ALICE);
    let scopes = Scopes::parse("other").unwrap();
    let first = session.identifier();
    let renewed = fixture
        .store
        .resolve(&fixture.target, ALICE, &scopes, first.as_bytes())
        .unwrap()
        .rotated_identifier()
        .unwrap();
    fixture.open(ALICE);
    for identifier in [first, renewed] {
        assert_eq!(
            fixture.find(ALICE, identifier.as_bytes()).unwrap_err(),
            ResolveError::Ended
        );
    }
    assert_eq!(fixture.store.0.rotated.len(), 0);
}

proptest! {
    /// E9: after any sequence of uses and ends, the sessions that are not in use are evicted in the
    /// order of their last use.
    #[test]
    fn sessions_are_evicted_in_the_order_of_their_last_use(
        steps in proptest::collection::vec((0..24_usize, 0..8_u8), 0..120),
        held in proptest::collection::vec(0..24_usize, 0..4),
    ) {
        let fixture = at_most(24);
        let mut order = Vec::from(fixture.open_in_turn::<24>());
        for (at, step) in steps {
            fixture.clock.advance(second());
            let session = order.remove(at % order.len());
            match step {
                0 => assert!(fixture.store.end(&session, EndReason::Deleted).is_some()),
                1 => {
                    // An eviction in between moves entries in the heap.
                    order.insert(at % (order.len() + 1), session);
                    drop(fixture.open(ALICE));
                    order.remove(0);
                    order.push(fixture.store.all().into_iter().max_by_key(|session| session.last_used()).unwrap());
                }
                _ => {
                    drop(fixture.hold(&session));
                    order.push(session);
                }
            }
            if order.len() < 24 {
                order.push(fixture.open(ALICE));
            }
        }
        fixture.ended.take();
        let _held: Vec<_> = held.iter().map(|at| fixture.hold(&order[at % order.len()])).collect();
        let expected: Vec<Box<str>> =
            order.iter().filter(|session| !session.is_in_use()).map(|session| (*session.identifier()).into()).collect();
        let kept: Vec<_> = expected.iter().map_while(|_| fixture.open_in_use(ALICE).ok()).collect();
        prop_assert_eq!(fixture.evicted(), expected);
        prop_assert_eq!(kept.len() + held_count(&order), 24);
    }
}

fn held_count(sessions: &[Arc<Session>]) -> usize {
    sessions
        .iter()
        .filter(|session| session.is_in_use())
        .count()
}

/// E9: while threads use sessions and open others at the limit, no session ends in use, each ends
/// once, and the limit always holds.
#[test]
fn uses_and_evictions_exclude_each_other() {
    let used: usize = (0..25).map(|_| use_and_open_concurrently()).sum();
    assert!(used > 0);
}

/// The number of threads that open sessions, and of those that use them.
const WORKERS: usize = 2;
/// The limit of the owner.
const MAX: usize = 4;
/// So few that tombstones suffice for the ended sessions of all threads. A floor would also end
/// sessions in use.
const OPENINGS: usize = 120;

/// What the threads share.
struct Race {
    fixture: Fixture,
    /// The identifiers of the newest sessions.
    newest: Vec<Mutex<Identifier>>,
    opened: AtomicUsize,
    used: AtomicUsize,
    /// The number of threads that still open sessions.
    opening: AtomicUsize,
    barrier: Barrier,
}

/// Counts a thread that opens sessions, until it ends or panics: the others wait for its end.
struct Opening<'a>(&'a AtomicUsize);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Race {
    fn open_sessions(&self, worker: usize) {
        let _opening = Opening(&self.opening);
        self.barrier.wait();
        for round in 0..OPENINGS {
            if let Ok(session) = self.fixture.open_in_use(ALICE) {
                self.opened.fetch_add(1, Ordering::SeqCst);
                *self.newest[(WORKERS * round + worker) % MAX].lock() = session.identifier();
            }
            assert!(
                self.fixture.store.len() <= MAX + WORKERS,
                "recorded before the evicted ones are removed"
            );
            self.fixture.clock.advance(Duration::from_millis(1));
        }
    }

    fn use_sessions(&self, worker: usize) {
        self.barrier.wait();
        for round in worker.. {
            if self.opening.load(Ordering::SeqCst) == 0 {
                break;
            }
            let identifier = self.newest[round % MAX].lock().clone();
            let Ok(session) = self.fixture.find(ALICE, identifier.as_bytes()) else {
                continue;
            };
            for _ in 0..3 {
                assert!(!session.has_ended(), "it ended while it was in use");
                thread::yield_now();
            }
            self.used.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Returns how often a session was used.
fn use_and_open_concurrently() -> usize {
    let fixture = at_most(MAX);
    let race = Race {
        newest: (0..MAX)
            .map(|_| Mutex::new(fixture.open(ALICE).identifier()))
            .collect(),
        fixture,
        opened: AtomicUsize::new(MAX),
        used: AtomicUsize::new(0),
        opening: AtomicUsize::new(WORKERS),
        barrier: Barrier::new(2 * WORKERS),
    };
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let race = &race;
            scope.spawn(move || race.open_sessions(worker));
            scope.spawn(move || race.use_sessions(worker));
        }
    });
    let Race {
        fixture,
        opened,
        used,
        ..
    } = race;
    let opened = opened.into_inner();
    assert!(opened > MAX);

    let mut evicted = fixture.evicted();
    assert_eq!(evicted.len(), opened - MAX);
    assert_eq!(fixture.store.len(), MAX);
    evicted.sort_unstable();
    evicted.dedup();
    assert_eq!(evicted.len(), opened - MAX, "each ends once");
    assert_eq!(fixture.store.0.capacity.counts(), (MAX, 1));

    for session in fixture.store.all() {
        fixture.store.end(&session, EndReason::Deleted);
    }
    assert_eq!(fixture.store.0.capacity.counts(), (0, 0));
    used.into_inner()
}
