//! Tests of the observer: what it is called for, and what it may do.

use super::{
    process::{Recorded, process},
    *,
};

/// The observer is called for each session that opens, with its owner.
#[test]
fn openings_are_heard() {
    struct Openings(Mutex<Vec<(String, bool)>>);

    impl SessionObserver for Openings {
        fn opened(&self, session: &Session) {
            self.0
                .lock()
                .push(((*session.identifier()).to_owned(), session.owner() == ALICE));
        }

        fn ended(&self, _: &Session, _: EndReason) {}
    }

    let openings = Arc::new(Openings(Mutex::default()));
    let settings = SessionSettings::new(SessionKey::random().unwrap());
    let store = SessionStore::builder(settings)
        .clock(Arc::new(ManualClock::default()))
        .observer(openings.clone())
        .build();
    let target = target();
    let hers = store
        .reserve(&target, ALICE, &Scopes::empty())
        .unwrap()
        .open(Box::default(), None)
        .unwrap();
    let nobodys = store
        .reserve(&target, Owner::Anonymous, &Scopes::empty())
        .unwrap()
        .open(Box::default(), None)
        .unwrap();
    assert_eq!(nobodys.owner(), Owner::Anonymous);

    let expected = [
        ((*hers.identifier()).to_owned(), true),
        ((*nobodys.identifier()).to_owned(), false),
    ];
    assert_eq!(*openings.0.lock(), expected);
}

/// E9: the observer may use the store, because it is called without a lock.
#[test]
fn observer_is_called_outside_locks() {
    struct Reopens(Mutex<Option<SessionStore>>, SessionTarget);
    impl SessionObserver for Reopens {
        fn ended(&self, session: &Session, reason: EndReason) {
            let store = self.0.lock().take().unwrap();
            store.end(session, reason);
            assert!(store.is_empty());
            drop(
                store
                    .reserve(&self.1, ALICE, &Scopes::empty())
                    .unwrap()
                    .open(Box::default(), None)
                    .unwrap(),
            );
        }
    }
    let target = target();
    let observer = Arc::new(Reopens(Mutex::new(None), target.clone()));
    let mut settings = SessionSettings::new(SessionKey::random().unwrap());
    (settings.max_total, settings.max_per_owner) = (1, 1);
    let store = SessionStore::builder(settings)
        .clock(Arc::new(ManualClock::default()))
        .observer(observer.clone())
        .build();
    *observer.0.lock() = Some(store.clone());
    let session = store
        .reserve(&target, ALICE, &Scopes::empty())
        .unwrap()
        .open(Box::default(), None)
        .unwrap();
    store.end(&session, EndReason::Deleted);
    assert_eq!(store.len(), 1);
}

/// E12: the observer is called when a session is adopted and released, and for the first one that
/// is not sealed.
#[test]
fn adopted_released_and_unsealed_sessions_are_reported() {
    #[derive(Default)]
    struct Calls(Mutex<Vec<&'static str>>);

    impl SessionObserver for Calls {
        fn adopted(&self, _: &Session) {
            self.0.lock().push("adopted");
        }

        fn released(&self, _: &Session) {
            self.0.lock().push("released");
        }

        fn not_sealed(&self, _: &Session) {
            self.0.lock().push("not sealed");
        }

        fn ended(&self, _: &Session, _: EndReason) {
            unreachable!("no session ends");
        }
    }

    let minute = Duration::from_secs(60);
    let clock = Arc::new(ManualClock::default());
    clock.advance(Duration::from_secs(1_800_000_000));
    let there = process(&clock, minute);
    let calls = Arc::<Calls>::default();
    let journal = Arc::new(Recorded {
        peer_delay: minute,
        ..Recorded::default()
    });
    let settings = SessionSettings::new(SessionKey::new(1, &[5; 32]));
    let here = SessionStore::builder(settings)
        .clock(clock.clone())
        .observer(calls.clone())
        .journal(journal)
        .build();

    let identifier = there.open();
    for _ in 0..2 {
        assert!(
            here.resolve(&target(), ALICE, &Scopes::empty(), identifier.as_bytes())
                .is_ok()
        );
    }
    assert_eq!(*calls.0.lock(), ["adopted"]);

    clock.advance(20 * minute);
    assert_eq!(there.try_use(&identifier), Ok(()));
    there.fixture.store.record_last_uses();
    here.import_last_uses(&there.journal.last_uses.lock());
    clock.advance(11 * minute);
    assert_eq!(here.sweep(), 1);
    assert_eq!(*calls.0.lock(), ["adopted", "released"]);

    for _ in 0..2 {
        let reservation = here.reserve(&target(), ALICE, &Scopes::empty()).unwrap();
        assert!(
            !reservation
                .open(vec![b'x'; Session::MAX_BACKEND_ID + 1].into(), None)
                .unwrap()
                .is_sealed()
        );
    }
    assert_eq!(*calls.0.lock(), ["adopted", "released", "not sealed"]);
}
