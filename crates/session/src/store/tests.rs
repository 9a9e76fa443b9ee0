use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use portcullis_metadata::{Clock, ResourceUri, Scopes, UnixTime};

use super::*;

mod model;
mod renewing;

const ISSUER: &str = "https://auth.example.com/realms/prod";
const ALICE: Owner<'_> = Owner::Subject {
    issuer: ISSUER,
    subject: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    client: Some("4b0c3f9e-desktop-client"),
};
const MALLORY: Owner<'_> = Owner::Subject { issuer: ISSUER, subject: "mallory", client: Some("app") };

#[derive(Default)]
struct HandClock(AtomicU64);

impl HandClock {
    fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn unix(&self) -> UnixTime {
        UnixTime::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<(Box<str>, EndReason)>>);

impl Heard {
    fn take(&self) -> Vec<(Box<str>, EndReason)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl SessionObserver for Heard {
    fn ended(&self, session: &Session, reason: EndReason) {
        self.0.lock().unwrap().push(((*session.identifier()).into(), reason));
    }
}

struct Bench {
    store: SessionStore,
    clock: Arc<HandClock>,
    heard: Arc<Heard>,
    resource: ResourceUri,
}

fn bench_with(change: impl FnOnce(&mut SessionSettings)) -> Bench {
    let mut settings = SessionSettings::new(SessionKey::new(1, [5; 16]));
    change(&mut settings);
    let (clock, heard) = (Arc::new(HandClock::default()), Arc::new(Heard::default()));
    let store = SessionStore::new(settings, clock.clone(), heard.clone());
    Bench { store, clock, heard, resource: ResourceUri::parse("https://mcp.example.com/mcp").unwrap() }
}

fn bench() -> Bench {
    bench_with(|_| {})
}

impl Bench {
    fn reserve(&self, owner: Owner<'_>) -> Result<Reservation, StoreFull> {
        self.store.reserve(&self.resource, owner, &Scopes::empty())
    }

    fn open(&self, owner: Owner<'_>) -> Arc<Session> {
        let backend = Box::from(*b"11111111-2222-3333-4444-555555555555");
        self.reserve(owner).unwrap().open(backend, Some("2025-11-25"))
    }

    fn hold(&self, session: &Arc<Session>) -> InUse {
        self.store.hold(Resolved { session: Arc::clone(session), number: 0 }, &Scopes::empty())
    }

    fn resolve(&self, owner: Owner<'_>, session: &Session) -> Result<Resolved, Unresolved> {
        self.store.resolve(&self.resource, owner, session.identifier().as_bytes())
    }
}

#[test]
fn a_session_resolves_to_what_was_opened() {
    let bench = bench();
    let opened = bench.open(ALICE);
    let found = bench.resolve(ALICE, &opened).unwrap();
    assert!(Arc::ptr_eq(&opened, &found.clone().into_session()));
    assert_eq!(found.backend(), b"11111111-2222-3333-4444-555555555555");
    assert_eq!(found.protocol_version(), Some("2025-11-25"));
    assert_eq!(found.resource(), &bench.resource);
    assert_eq!((bench.store.len(), bench.store.is_empty()), (1, false));
}

/// E3, E7, E10: a session whose tag was computed before is still known by its own identifier alone, to its owner, under keys
/// that have its own among them.
#[test]
fn what_was_proved_once_counts_for_nothing_else() {
    let bench = bench();
    let session = bench.open(ALICE);
    let unknown = |owner, identifier: &[u8]| {
        assert_eq!(bench.store.resolve(&bench.resource, owner, identifier).unwrap_err(), Unresolved::Unknown);
    };
    for _ in 0..3 {
        assert!(bench.resolve(ALICE, &session).is_ok());
    }
    unknown(MALLORY, session.identifier().as_bytes());
    for at in 0..session.identifier().len() {
        let mut changed = session.identifier().as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        unknown(ALICE, &changed);
    }
    bench.store.set_keys(SessionKey::new(1, [6; 16]).into());
    unknown(ALICE, session.identifier().as_bytes());
    bench.store.set_keys(SessionKey::new(1, [5; 16]).into());
    assert!(bench.resolve(ALICE, &session).is_ok());
    bench.store.end(&session, EndReason::Deleted);
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), Unresolved::Ended);
}

/// F6: a version that becomes known later counts once.
#[test]
fn a_version_may_come_later() {
    let bench = bench();
    let session = bench.reserve(ALICE).unwrap().open(Box::default(), None);
    assert_eq!(session.protocol_version(), None);
    for version in ["2025-06-18", "2025-11-25"] {
        session.set_protocol_version(version);
        assert_eq!(session.protocol_version(), Some("2025-06-18"));
    }
}

/// E1: what is not visible ASCII, too long, or no identifier of ours, is unknown.
#[test]
fn rubbish_is_unknown() {
    let bench = bench();
    let identifier = (*bench.open(ALICE).identifier()).to_owned();
    let longer = format!("{identifier}A");
    let cases: [&[u8]; 8] = [
        b"",
        b" ",
        &[0xFF; 44],
        &[b'A'; 44],
        &[b'A'; 129],
        longer.as_bytes(),
        &identifier.as_bytes()[..43],
        b"11111111-2222-3333-4444-555555555555",
    ];
    for case in cases {
        let refused = bench.store.resolve(&bench.resource, ALICE, case).unwrap_err();
        assert_eq!(refused, Unresolved::Unknown, "{case:?}");
    }
}

/// E3: neither identifier nor backend identifier show in Debug; a short hash stands for them.
#[test]
fn debug_shows_the_hash_only() {
    let bench = bench();
    let session = bench.open(ALICE);
    let held = bench.hold(&session);
    assert!(format!("{held:?}").contains(&session.log_hash().to_string()));
    let found = bench.resolve(ALICE, &session).unwrap();
    let (reserved, key) = (bench.reserve(ALICE).unwrap(), SessionKey::new(1, [5; 16]));
    let shown = format!("{:?} {reserved:?} {:?} {key:?}", bench.store, reserved.held_room());
    assert_eq!(shown, "SessionStore { len: 1, .. } Reservation { .. } HeldRoom { .. } SessionKey { epoch: 1, .. }");
    let shown = format!("{session:?} {found:?} {held:?}");
    assert!(shown.contains(&session.log_hash().to_string()));
    assert_eq!(session.log_hash().to_string().len(), 16);
    assert!(!shown.contains(&*session.identifier()) && !shown.contains("11111111"));
    assert_ne!(session.log_hash(), bench.open(ALICE).log_hash());
}

/// E7: anybody else is answered exactly as for an identifier that never was, before and after the session's end.
#[test]
fn foreign_use_is_unknown() {
    let bench = bench();
    let session = bench.open(ALICE);
    let Owner::Subject { issuer, subject, client } = ALICE else { unreachable!() };
    let strangers = [
        MALLORY,
        Owner::Nobody,
        Owner::Subject { issuer, subject, client: None },
        Owner::Subject { issuer, subject, client: Some("other") },
        Owner::Subject { issuer: "https://auth.example.com/realms/prod/", subject, client },
        Owner::Subject { issuer, subject: &subject.to_uppercase(), client },
        Owner::Client { issuer, client: subject },
    ];
    for stranger in strangers {
        assert_eq!(bench.resolve(stranger, &session).unwrap_err(), Unresolved::Unknown, "{stranger:?}");
    }
    bench.store.end(&session, EndReason::Deleted);
    for stranger in strangers {
        assert_eq!(bench.resolve(stranger, &session).unwrap_err(), Unresolved::Unknown, "{stranger:?}");
    }
}

/// E7: a session of one resource is unknown at another.
#[test]
fn other_resource_is_unknown() {
    let bench = bench();
    let session = bench.open(ALICE);
    let other = ResourceUri::parse("https://mcp.example.com/mcp/").unwrap();
    let refused = bench.store.resolve(&other, ALICE, session.identifier().as_bytes()).unwrap_err();
    assert_eq!(refused, Unresolved::Unknown);
}

/// E7: a right tag does not help where the record names another owner.
#[test]
fn record_is_compared_beside_the_tag() {
    let bench = bench();
    let session = bench.open(ALICE);
    let forged = Name::build(&SessionKey::new(1, [5; 16]), &bench.resource, MALLORY, &session.random()).identifier();
    let refused = bench.store.resolve(&bench.resource, MALLORY, forged.as_bytes()).unwrap_err();
    assert_eq!(refused, Unresolved::Unknown);
}

/// E7, E9: a stranger's use neither keeps a session alive nor ends it.
#[test]
fn foreign_use_does_not_touch() {
    let bench = bench();
    let session = bench.open(ALICE);
    bench.clock.advance(Duration::from_secs(29 * 60));
    assert_eq!(bench.resolve(MALLORY, &session).unwrap_err(), Unresolved::Unknown);
    bench.clock.advance(Duration::from_secs(60));
    assert_eq!(bench.resolve(MALLORY, &session).unwrap_err(), Unresolved::Unknown);
    assert!(bench.heard.take().is_empty());
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), Unresolved::Ended);
}

/// E9: idle time counts from the last use and holds without a sweep.
#[test]
fn idle_sessions_end_at_resolve() {
    let bench = bench();
    let session = bench.open(ALICE);
    for _ in 0..3 {
        bench.clock.advance(Duration::from_secs(30 * 60 - 1));
        bench.resolve(ALICE, &session).unwrap();
    }
    bench.clock.advance(Duration::from_secs(30 * 60 - 1));
    assert!(bench.store.touch(&session));
    bench.clock.advance(Duration::from_secs(30 * 60));
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), Unresolved::Ended);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Idle)]);
    assert!(!bench.store.touch(&session));
    assert_eq!((bench.store.len(), bench.store.0.rooms.counts()), (0, (0, 0)));
}

/// E9: whoever found a session just before it ended cannot use it any more, and brings nothing of it back.
#[test]
fn an_ended_session_cannot_be_used_again() {
    let bench = bench();
    let session = bench.open(ALICE);
    assert!(bench.store.touch(&session));
    bench.store.end(&session, EndReason::Deleted);
    assert!(!bench.store.touch(&session));
    bench.clock.advance(Duration::from_secs(24 * 3600));
    assert!(!bench.store.touch(&session));
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Deleted)]);
    assert_eq!((bench.store.len(), bench.store.0.rooms.counts()), (0, (0, 0)));
}

/// E9: a session in use does not go idle, and its idle time starts when the last use ends.
#[test]
fn a_session_in_use_does_not_go_idle() {
    let bench = bench();
    let session = bench.open(ALICE);
    let (stream, request) = (bench.hold(&session), bench.hold(&session));
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

/// E9: the absolute lifetime ends a session in use all the same, and the end of that use is not a second end.
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

/// E9: the lifetime ends a session however much it is used.
#[test]
fn lifetime_ends_at_resolve() {
    let bench = bench();
    let session = bench.open(ALICE);
    for _ in 0..71 {
        bench.clock.advance(Duration::from_secs(20 * 60));
        bench.resolve(ALICE, &session).unwrap();
    }
    bench.clock.advance(Duration::from_secs(20 * 60));
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), Unresolved::Ended);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Lifetime)]);
}

/// E9: the reaper ends what nobody asks for, and only that.
#[test]
fn sweep_ends_expired_sessions() {
    let bench = bench();
    let old = bench.open(ALICE);
    bench.clock.advance(Duration::from_secs(20 * 60));
    let young = bench.open(MALLORY);
    bench.clock.advance(Duration::from_secs(10 * 60));
    assert_eq!(bench.store.sweep(), 1);
    assert_eq!(bench.heard.take(), [((*old.identifier()).into(), EndReason::Idle)]);
    bench.resolve(MALLORY, &young).unwrap();
    assert_eq!(bench.store.sweep(), 0);
}

/// E9: one sweep ends a bounded number; the next one goes on.
#[test]
fn sweep_is_bounded() {
    let bench = bench_with(|settings| settings.max_per_owner = usize::MAX);
    let count = SWEEP_BATCH + 10;
    for _ in 0..count {
        bench.open(ALICE);
    }
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(bench.store.sweep(), SWEEP_BATCH);
    assert_eq!(bench.store.sweep(), 10);
    assert_eq!(bench.store.sweep(), 0);
    assert_eq!(bench.heard.take().len(), count);
    assert_eq!(bench.store.0.rooms.counts(), (0, 0));
}

/// E9: a sweep finds what is over among however many that are not.
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

/// E9: DELETE ends a session, once, whoever asks again, and for no other store's observer.
#[test]
fn end_is_heard_once() {
    let (bench, other) = (bench(), bench());
    let session = bench.open(ALICE);
    other.store.end(&session, EndReason::Deleted);
    bench.resolve(ALICE, &session).unwrap();
    bench.store.end(&session, EndReason::Deleted);
    bench.store.end(&session, EndReason::TransportClosed);
    bench.clock.advance(Duration::from_secs(48 * 3600));
    bench.store.sweep();
    assert_eq!(bench.resolve(ALICE, &session).unwrap_err(), Unresolved::Ended);
    assert_eq!(bench.heard.take(), [((*session.identifier()).into(), EndReason::Deleted)]);
    assert!(other.heard.take().is_empty());
}

/// E9: a shutdown ends every session.
#[test]
fn end_all() {
    let bench = bench();
    bench.open(ALICE);
    bench.open(MALLORY);
    bench.store.end_all(EndReason::Shutdown);
    assert!(bench.heard.take().iter().all(|(_, reason)| *reason == EndReason::Shutdown));
    assert!(bench.store.is_empty());
}

/// E9: the observer may use the store: no lock is held while it is told.
#[test]
fn observer_is_called_outside_locks() {
    struct Reopens(Mutex<Option<SessionStore>>, ResourceUri);
    impl SessionObserver for Reopens {
        fn ended(&self, session: &Session, reason: EndReason) {
            let store = self.0.lock().unwrap().take().unwrap();
            store.end(session, reason);
            assert!(store.is_empty());
            store.reserve(&self.1, ALICE, &Scopes::empty()).unwrap().open(Box::default(), None);
        }
    }
    let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
    let observer = Arc::new(Reopens(Mutex::new(None), resource.clone()));
    let mut settings = SessionSettings::new(SessionKey::random().unwrap());
    (settings.max_total, settings.max_per_owner) = (1, 1);
    let store = SessionStore::new(settings, Arc::new(HandClock::default()), observer.clone());
    *observer.0.lock().unwrap() = Some(store.clone());
    let session = store.reserve(&resource, ALICE, &Scopes::empty()).unwrap().open(Box::default(), None);
    store.end(&session, EndReason::Deleted);
    assert_eq!(store.len(), 1);
}

/// E9: reservations count toward both limits and give their room back; nobody active is evicted.
#[test]
fn limits_count_reservations() {
    let bench = bench_with(|settings| (settings.max_total, settings.max_per_owner) = (3, 2));
    let first = bench.open(ALICE);
    let held = bench.reserve(ALICE).unwrap();
    assert_eq!(bench.reserve(ALICE).unwrap_err(), StoreFull::Owner);
    let second = bench.open(MALLORY);
    assert_eq!(bench.reserve(MALLORY).unwrap_err(), StoreFull::Total);
    assert_eq!(bench.reserve(Owner::Nobody).unwrap_err(), StoreFull::Total);
    drop(held);
    let third = bench.open(ALICE);
    for (owner, session) in [(ALICE, &first), (MALLORY, &second), (ALICE, &third)] {
        bench.resolve(owner, session).unwrap();
    }
    assert_eq!(bench.store.0.rooms.counts(), (3, 2));
    for session in [first, second, third] {
        bench.store.end(&session, EndReason::Deleted);
    }
    assert_eq!(bench.store.0.rooms.counts(), (0, 0));
}

/// E2, E9: a held room counts after its reservation is gone, and no longer than that; nor twice when a session opens in it.
#[test]
fn a_held_room_counts() {
    let bench = bench_with(|settings| settings.max_total = 1);
    let reservation = bench.reserve(ALICE).unwrap();
    let held = reservation.held_room();
    drop(reservation);
    assert_eq!(bench.reserve(MALLORY).unwrap_err(), StoreFull::Total);
    drop(held);
    let reservation = bench.reserve(ALICE).unwrap();
    let held = reservation.held_room();
    let session = reservation.open(Box::default(), None);
    drop(held);
    assert_eq!(bench.store.0.rooms.counts(), (1, 1));
    bench.store.end(&session, EndReason::Deleted);
    assert_eq!(bench.store.0.rooms.counts(), (0, 0));
}

/// E9: no limit per owner holds for sessions without an owner, and none is left behind by refusals.
#[test]
fn limits_at_their_edges() {
    let bench = bench_with(|settings| (settings.max_total, settings.max_per_owner) = (5, 0));
    assert_eq!(bench.reserve(ALICE).unwrap_err(), StoreFull::Owner);
    let open: Vec<_> = (0..5).map(|_| bench.open(Owner::Nobody)).collect();
    bench.resolve(Owner::Nobody, &open[0]).unwrap();
    assert_eq!(bench.reserve(Owner::Nobody).unwrap_err(), StoreFull::Total);
    assert_eq!(bench.store.0.rooms.counts(), (5, 0));
}

/// E9: however many ask at once, the limits hold exactly.
#[test]
fn limits_hold_under_contention() {
    let bench = bench_with(|settings| (settings.max_total, settings.max_per_owner) = (100, 7));
    let barrier = Barrier::new(8);
    let owners: Vec<String> = (0..20).map(|number| format!("user-{number}")).collect();
    let kept: Vec<Vec<(usize, Arc<Session>)>> = thread::scope(|scope| {
        let spawned: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let mut kept = Vec::new();
                    for round in 0..400 {
                        let number = round % owners.len();
                        let owner = Owner::Subject { issuer: ISSUER, subject: &owners[number], client: None };
                        if let Ok(room) = bench.reserve(owner) {
                            assert!(bench.store.0.rooms.counts().0 <= 100);
                            if round % 3 == 0 {
                                drop(room);
                            } else {
                                kept.push((number, room.open(Box::default(), None)));
                            }
                        }
                    }
                    kept
                })
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let kept: Vec<_> = kept.into_iter().flatten().collect();
    assert_eq!(kept.len(), 100);
    for number in 0..owners.len() {
        assert!(kept.iter().filter(|(owner, _)| *owner == number).count() <= 7);
    }
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                for (_, session) in &kept {
                    bench.store.end(session, EndReason::Deleted);
                }
            });
        }
    });
    assert_eq!(bench.heard.take().len(), 100);
    assert_eq!((bench.store.len(), bench.store.0.rooms.counts()), (0, (0, 0)));
}

/// E4: finding the session of an identifier allocates nothing.
#[test]
fn resolve_allocates_nothing() {
    let bench = bench();
    let session = bench.open(ALICE);
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            assert!(bench.resolve(ALICE, &session).is_ok());
            assert!(bench.resolve(MALLORY, &session).is_err());
        }
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn a_session_takes_less_than_500_bytes() {
    const COUNT: usize = 100_000;
    let bench = bench();
    let subjects: Vec<String> = (0..COUNT).map(|number| format!("f81d4fae-7dec-11d0-a765-{number:012}")).collect();
    let counted = allocation_counter::measure(|| {
        for subject in &subjects {
            bench.open(Owner::Subject { issuer: ISSUER, subject, client: Some("4b0c3f9e-desktop-client") });
        }
    });
    let each = counted.bytes_current as usize / COUNT;
    assert!(each <= 500, "{each} bytes");
}

/// Who watches hears of each session when it opens, and whose it is.
#[test]
fn openings_are_heard() {
    struct Openings(Mutex<Vec<(String, bool)>>);

    impl SessionObserver for Openings {
        fn opened(&self, session: &Session) {
            self.0.lock().unwrap().push(((*session.identifier()).to_owned(), session.owned_by() == ALICE));
        }

        fn ended(&self, _: &Session, _: EndReason) {}
    }

    let openings = Arc::new(Openings(Mutex::default()));
    let settings = SessionSettings::new(SessionKey::random().unwrap());
    let store = SessionStore::new(settings, Arc::new(HandClock::default()), openings.clone());
    let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
    let hers = store.reserve(&resource, ALICE, &Scopes::empty()).unwrap().open(Box::default(), None);
    let nobodys = store.reserve(&resource, Owner::Nobody, &Scopes::empty()).unwrap().open(Box::default(), None);
    assert_eq!(nobodys.owned_by(), Owner::Nobody);
    let expected = [((*hers.identifier()).to_owned(), true), ((*nobodys.identifier()).to_owned(), false)];
    assert_eq!(*openings.0.lock().unwrap(), expected);
}
