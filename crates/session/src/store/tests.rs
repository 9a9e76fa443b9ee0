//! Tests of the store with a manual clock.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use portcullis_metadata::{Clock, ResourceUri, Scopes, UnixTime};

use super::*;
use crate::{
    end_reason::EndReason,
    error::ResolveError,
    identifier::{Identifier, SessionKey},
    journal::LastUse,
};

mod ending;
mod evicting;
mod limits;
mod listing;
mod memory;
mod model;
mod observing;
mod peers;
mod replicas;
mod resolving;
mod rotation;
mod sealed;

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
    fn now(&self) -> UnixTime {
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
    target: SessionTarget,
}

fn target() -> SessionTarget {
    ResourceUri::parse("https://mcp.example.com/mcp").unwrap().into()
}

fn bench_with(change: impl FnOnce(&mut SessionSettings)) -> Bench {
    let mut settings = SessionSettings::new(SessionKey::new(1, &[5; 32]));
    change(&mut settings);
    let clock = Arc::new(HandClock::default());
    let heard = Arc::new(Heard::default());
    let store = SessionStore::new(settings, clock.clone(), heard.clone());
    Bench { store, clock, heard, target: target() }
}

fn bench() -> Bench {
    bench_with(|_| {})
}

impl Bench {
    fn reserve(&self, owner: Owner<'_>) -> Result<Reservation, ReservationError> {
        self.store.reserve(&self.target, owner, &Scopes::empty())
    }

    fn open(&self, owner: Owner<'_>) -> Arc<Session> {
        Arc::clone(self.open_in_use(owner).unwrap().session())
    }

    fn open_in_use(&self, owner: Owner<'_>) -> Result<InUse, ReservationError> {
        self.reserve(owner)?.open(Box::from(*b"11111111-2222-3333-4444-555555555555"), Some("2025-11-25"))
    }

    fn hold(&self, session: &Session) -> InUse {
        self.resolve(session.owner(), session).unwrap()
    }

    fn resolve(&self, owner: Owner<'_>, session: &Session) -> Result<InUse, ResolveError> {
        self.find(owner, session.identifier().as_bytes())
    }

    fn find(&self, owner: Owner<'_>, identifier: &[u8]) -> Result<InUse, ResolveError> {
        self.store.resolve(&self.target, owner, &Scopes::empty(), identifier)
    }
}
