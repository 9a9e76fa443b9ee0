//! Tests of the observer: what it is called for, and what it may do.

use super::*;

/// The observer is called for each session that opens, with its owner.
#[test]
fn openings_are_heard() {
    struct Openings(Mutex<Vec<(String, bool)>>);

    impl SessionObserver for Openings {
        fn opened(&self, session: &Session) {
            self.0.lock().unwrap().push(((*session.identifier()).to_owned(), session.owner() == ALICE));
        }

        fn ended(&self, _: &Session, _: EndReason) {}
    }

    let openings = Arc::new(Openings(Mutex::default()));
    let settings = SessionSettings::new(SessionKey::random().unwrap());
    let store = SessionStore::new(settings, Arc::new(ManualClock::default()), openings.clone());
    let target = target();
    let hers = store.reserve(&target, ALICE, &Scopes::empty()).unwrap().open(Box::default(), None).unwrap();
    let nobodys =
        store.reserve(&target, Owner::Anonymous, &Scopes::empty()).unwrap().open(Box::default(), None).unwrap();
    assert_eq!(nobodys.owner(), Owner::Anonymous);

    let expected = [((*hers.identifier()).to_owned(), true), ((*nobodys.identifier()).to_owned(), false)];
    assert_eq!(*openings.0.lock().unwrap(), expected);
}

/// E9: the observer may use the store, because it is called without a lock.
#[test]
fn observer_is_called_outside_locks() {
    struct Reopens(Mutex<Option<SessionStore>>, SessionTarget);
    impl SessionObserver for Reopens {
        fn ended(&self, session: &Session, reason: EndReason) {
            let store = self.0.lock().unwrap().take().unwrap();
            store.end(session, reason);
            assert!(store.is_empty());
            drop(store.reserve(&self.1, ALICE, &Scopes::empty()).unwrap().open(Box::default(), None).unwrap());
        }
    }
    let target = target();
    let observer = Arc::new(Reopens(Mutex::new(None), target.clone()));
    let mut settings = SessionSettings::new(SessionKey::random().unwrap());
    (settings.max_total, settings.max_per_owner) = (1, 1);
    let store = SessionStore::new(settings, Arc::new(ManualClock::default()), observer.clone());
    *observer.0.lock().unwrap() = Some(store.clone());
    let session = store.reserve(&target, ALICE, &Scopes::empty()).unwrap().open(Box::default(), None).unwrap();
    store.end(&session, EndReason::Deleted);
    assert_eq!(store.len(), 1);
}
