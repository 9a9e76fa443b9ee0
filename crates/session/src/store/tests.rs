//! The fixture of the tests of the store: a store with a manual clock.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_metadata::{Clock, ResourceUri, Scopes, UnixTime};

use super::*;
use crate::{
    end_reason::EndReason,
    error::ResolveError,
    identifier::{Identifier, SessionKey},
    journal::LastUse,
};

mod confirming;
mod ending;
mod evicting;
mod limits;
mod listing;
mod memory;
mod model;
mod observing;
mod peers;
mod process;
mod resolving;
mod rotation;
mod sealed;

const ISSUER: &str = "https://auth.example.com/realms/prod";
pub(super) const ALICE: Owner<'_> = Owner::Subject {
    issuer: ISSUER,
    subject: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    client: Some("4b0c3f9e-desktop-client"),
};
pub(super) const MALLORY: Owner<'_> = Owner::Subject {
    issuer: ISSUER,
    subject: "mallory",
    client: Some("app"),
};

/// A clock that a test advances.
#[derive(Default)]
struct ManualClock(AtomicU64);

impl ManualClock {
    fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixTime {
        UnixTime::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// The ended sessions that the store reported: their identifiers and reasons.
#[derive(Default)]
struct EndedSessions(Mutex<Vec<(Box<str>, EndReason)>>);

impl EndedSessions {
    fn take(&self) -> Vec<(Box<str>, EndReason)> {
        std::mem::take(&mut self.0.lock())
    }
}

impl SessionObserver for EndedSessions {
    fn ended(&self, session: &Session, reason: EndReason) {
        self.0.lock().push(((*session.identifier()).into(), reason));
    }
}

/// Returns whether an end is recorded: `None` if that is not known yet.
pub(super) fn confirmed(record: &mut EndRecord) -> Option<bool> {
    match Pin::new(record).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result.is_ok()),
        Poll::Pending => None,
    }
}

/// A store with its clock, its reported ends and one target.
struct Fixture {
    store: SessionStore,
    clock: Arc<ManualClock>,
    ended: Arc<EndedSessions>,
    target: SessionTarget,
}

pub(super) fn target() -> SessionTarget {
    ResourceUri::parse("https://mcp.example.com/mcp")
        .unwrap()
        .into()
}

/// Returns a store with changed settings.
fn fixture_with(change: impl FnOnce(&mut SessionSettings)) -> Fixture {
    let mut settings = SessionSettings::new(SessionKey::new(1, &[5; 32]));
    change(&mut settings);
    let clock = Arc::new(ManualClock::default());
    let ended = Arc::new(EndedSessions::default());
    let store = SessionStore::builder(settings)
        .clock(clock.clone())
        .observer(ended.clone())
        .build();
    Fixture {
        store,
        clock,
        ended,
        target: target(),
    }
}

fn fixture() -> Fixture {
    fixture_with(|_| {})
}

impl Fixture {
    fn reserve(&self, owner: Owner<'_>) -> Result<Reservation, ReservationError> {
        self.store.reserve(&self.target, owner, &Scopes::empty())
    }

    /// Opens a session that is not in use.
    fn open(&self, owner: Owner<'_>) -> Arc<Session> {
        Arc::clone(self.open_in_use(owner).unwrap().session())
    }

    /// Opens a session, which is in use until the returned value is dropped.
    fn open_in_use(&self, owner: Owner<'_>) -> Result<InUse, ReservationError> {
        self.reserve(owner)?.open(
            Box::from(*b"11111111-2222-3333-4444-555555555555"),
            Some("2025-11-25"),
        )
    }

    /// Uses a session of its owner until the returned value is dropped.
    fn hold(&self, session: &Session) -> InUse {
        self.resolve(session.owner(), session).unwrap()
    }

    fn resolve(&self, owner: Owner<'_>, session: &Session) -> Result<InUse, ResolveError> {
        self.find(owner, session.identifier().as_bytes())
    }

    fn find(&self, owner: Owner<'_>, identifier: &[u8]) -> Result<InUse, ResolveError> {
        self.store
            .resolve(&self.target, owner, &Scopes::empty(), identifier)
    }
}
