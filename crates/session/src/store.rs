use std::{
    fmt, ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use portcullis_metadata::{Clock, ResourceUri, Scopes};

use crate::{
    EndReason, Identifier, InUse, Owner, Resolved, Session, SessionKey, SessionKeys, SessionObserver, SessionSettings,
    StoreFull, Unresolved,
    identifier::{self, Name, Random},
    lineage::Successor,
    room::Rooms,
    session::{Life, Record, Timeouts, millis},
};

/// The sessions of one process. Cheap to clone; clones share everything.
///
/// Bounded by [`SessionSettings::max_total`] and [`SessionSettings::max_per_owner`]: at either, new sessions are
/// refused and existing ones stay.
#[derive(Clone)]
pub struct SessionStore(Arc<Shared>);

struct Shared {
    keys: ArcSwap<SessionKeys>,
    /// Counts the lists of keys. It changes after the list has.
    keys_number: AtomicU32,
    /// For hashes that are compared and logged here; not replaced together with the keys.
    marks: SessionKey,
    timeouts: Timeouts,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn SessionObserver>,
    rooms: Rooms,
    /// Each session under its first identifier, for as long as it lives.
    table: DashMap<Random, Arc<Session>>,
    /// The sessions that were given a new identifier once more, under each of these, with its number.
    renewed: DashMap<Random, Resolved>,
}

/// How many sessions one sweep ends at most, since each end may cost its observer something.
const SWEEP_BATCH: usize = 1024;

impl SessionStore {
    /// An empty store.
    pub fn new(settings: SessionSettings, clock: Arc<dyn Clock>, observer: Arc<dyn SessionObserver>) -> Self {
        let SessionSettings { idle_timeout, lifetime, max_total, max_per_owner, keys } = settings;
        Self(Arc::new(Shared {
            marks: keys.current().for_marks(),
            keys: ArcSwap::from_pointee(keys),
            keys_number: AtomicU32::new(1),
            timeouts: Timeouts { idle: idle_timeout, lifetime },
            clock,
            observer,
            rooms: Rooms::new(max_total, max_per_owner),
            table: DashMap::new(),
            renewed: DashMap::new(),
        }))
    }

    /// Replaces the keys. Sessions whose identifiers were tagged with a key that is in both lists go on; identifiers of
    /// a key that no longer is are unknown.
    pub fn set_keys(&self, keys: SessionKeys) {
        self.0.keys.store(Arc::new(keys));
        self.0.keys_number.fetch_add(1, Ordering::Release);
    }

    /// Holds room for a session until the reservation is opened or dropped. `scopes` are what the caller's token allows:
    /// other ones will get the session a new identifier.
    ///
    /// # Errors
    /// At a limit, or when the operating system gives no random bytes.
    pub fn reserve(&self, resource: &ResourceUri, owner: Owner<'_>, scopes: &Scopes) -> Result<Reservation, StoreFull> {
        let room = Room::take(&self.0, owner)?;
        let name = Name::new(self.0.keys.load().current(), resource, owner).ok_or(StoreFull::NoRandomness)?;
        let authorization = identifier::authorization(&self.0.marks, scopes);
        Ok(Reservation { room, resource: resource.clone(), name, authorization })
    }

    /// The active session of this identifier, resource and owner; its idle time starts anew. Allocates nothing.
    ///
    /// The caller has to have authenticated the owner: the identifier proves nothing.
    ///
    /// # Errors
    /// [`Unresolved::Unknown`] for everything that was not issued to this owner for this resource, without any
    /// effect on whosever it is; [`Unresolved::Ended`] for the owner's own identifier when its session has ended.
    pub fn resolve(&self, resource: &ResourceUri, owner: Owner<'_>, identifier: &[u8]) -> Result<Resolved, Unresolved> {
        let name = Name::parse(identifier).ok_or(Unresolved::Unknown)?;
        let keys_number = self.0.keys_number.load(Ordering::Acquire);
        let found = self.0.find(&name.random());
        let is_proved = found.as_ref().is_some_and(|found| found.is_proved(&name, keys_number));
        if !is_proved && !identifier::is_issued(&self.0.keys.load(), resource, owner, &name) {
            return Err(Unresolved::Unknown);
        }
        let resolved = found.ok_or(Unresolved::Ended)?;
        if !resolved.belongs_to(resource, owner) {
            return Err(Unresolved::Unknown);
        }
        if !is_proved {
            resolved.prove(&name, keys_number);
        }
        let now = self.0.clock.monotonic();
        let active = resolved.use_number(resolved.number, now) && self.touch_at(&resolved, now);
        if active { Ok(resolved) } else { Err(Unresolved::Ended) }
    }

    /// Keeps a session from going idle for as long as the returned value lives. Its lifetime still ends it.
    /// `scopes` are what the caller's token allows; see [`InUse::renewed`].
    pub fn hold(&self, session: Resolved, scopes: &Scopes) -> InUse {
        InUse::new(self.clone(), session, identifier::authorization(&self.0.marks, scopes))
    }

    /// Counts this moment as a use of the session. Whether it is still active.
    pub(crate) fn touch(&self, session: &Session) -> bool {
        self.touch_at(session, self.0.clock.monotonic())
    }

    fn touch_at(&self, session: &Session, now: Duration) -> bool {
        match session.touch(now, self.0.timeouts) {
            Life::Active => true,
            Life::Ended => false,
            Life::JustExpired(reason) => {
                self.0.remove(session, reason);
                false
            }
        }
    }

    /// See [`InUse::renewed`]. `number` is that of the identifier which the use came with.
    pub(crate) fn renewed(&self, session: &Arc<Session>, number: u32, authorization: u64) -> Option<Identifier> {
        let newest = session.successor();
        if newest.map_or(0, |newest| newest.number) == number {
            let made_for = newest.map_or(session.authorization(), |newest| newest.authorization);
            if authorization == made_for {
                return None;
            }
            let now = millis(self.0.clock.monotonic());
            if newest.is_some_and(|newest| !newest.may_be_followed(now)) {
                return None;
            }
            self.0.renew(session, number.checked_add(1)?, authorization, now)?;
        }
        (!session.has_ended()).then(|| session.identifier())
    }

    /// Ends a session; nothing happens when it has ended already or is another store's.
    pub fn end(&self, session: &Session, reason: EndReason) {
        self.0.remove(session, reason);
    }

    /// Ends every session, for a shutdown. Sessions that are opened meanwhile may stay.
    pub fn end_all(&self, reason: EndReason) {
        let all: Vec<_> = self.0.table.iter().map(|held| Arc::clone(&held)).collect();
        for session in all {
            self.0.remove(&session, reason);
        }
    }

    /// Ends sessions whose time is over, at most 1,024 a call, and says how many it ended: after a full batch
    /// there may be more. Call it on a timer; requests are judged by the time-outs without it as well.
    pub fn sweep(&self) -> usize {
        let (now, timeouts) = (self.0.clock.monotonic(), self.0.timeouts);
        let over: Vec<_> = self
            .0
            .table
            .iter()
            .filter(|held| held.is_over(now, timeouts))
            .take(SWEEP_BATCH)
            .map(|held| Arc::clone(&held))
            .collect();
        let mut ended = 0;
        for session in over {
            // It may have been used or ended since it was found.
            if let Life::JustExpired(reason) = session.expire(now, timeouts) {
                self.0.remove(&session, reason);
                ended += 1;
            }
        }
        self.0.forget_retired(now);
        ended
    }

    /// How many sessions there are, reservations apart.
    pub fn len(&self) -> usize {
        self.0.table.len()
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.0.table.is_empty()
    }
}

impl Shared {
    fn find(&self, random: &Random) -> Option<Resolved> {
        match self.table.get(random) {
            Some(held) => Some(Resolved { session: Arc::clone(&held), number: 0 }),
            None => self.renewed.get(random).map(|held| held.clone()),
        }
    }

    /// Gives a session its next identifier, unless somebody else just did, or it has ended. Nothing when the operating
    /// system has no random bytes.
    fn renew(&self, session: &Arc<Session>, number: u32, authorization: u64, now: u64) -> Option<()> {
        let name = Name::new(self.keys.load().current(), session.resource(), session.owned_by())?;
        // It resolves before anybody can be told of it, and no lock of the table is taken under the session's.
        self.renewed.insert(name.random(), Resolved { session: Arc::clone(session), number });
        let successor = Successor::new(name, number, authorization, now);
        match session.later().add(successor, now, || !session.has_ended()) {
            Ok(forgotten) => forgotten.iter().for_each(|random| drop(self.renewed.remove(random))),
            Err(not_added) => drop(self.renewed.remove(&not_added)),
        }
        Some(())
    }

    /// Forgets identifiers whose successors have long been in use, a bounded number at a time.
    fn forget_retired(&self, now: Duration) {
        let retired: Vec<Random> = self
            .renewed
            .iter()
            .filter(|held| held.is_retired(held.number, now))
            .take(SWEEP_BATCH)
            .map(|held| *held.key())
            .collect();
        for random in &retired {
            self.renewed.remove(random);
        }
    }

    /// Whoever takes the session out of the table is the one that tells the observer, after the lock is gone.
    fn remove(&self, session: &Session, reason: EndReason) {
        if self.table.remove_if(&session.random(), |_, held| ptr::eq(&**held, session)).is_some() {
            session.close();
            // After it is closed no identifier is added any more.
            for random in session.take_later() {
                self.renewed.remove(&random);
            }
            self.rooms.release(session.owner());
            self.observer.ended(session, reason);
        }
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Room for one session, given back when dropped. Made by [`SessionStore::reserve`].
#[must_use = "dropping a reservation gives its room back"]
pub struct Reservation {
    room: Arc<Room>,
    resource: ResourceUri,
    name: Name,
    authorization: u64,
}

impl Reservation {
    /// Keeps the room taken beyond the reservation: for whoever goes on with the opening when nobody waits for it any
    /// more.
    pub fn held_room(&self) -> HeldRoom {
        HeldRoom { _room: Arc::clone(&self.room) }
    }

    /// Records the session, active from this moment. `backend` is whatever the backend knows it by, opaque here;
    /// `protocol_version` the one agreed on, if it is known by now ([`Session::set_protocol_version`]).
    pub fn open(self, backend: Box<[u8]>, protocol_version: Option<&'static str>) -> Arc<Session> {
        let Self { room, resource, name, authorization } = self;
        let (store, owner) = room.keep();
        let log_hash = identifier::log_hash(&store.marks, &name.random());
        let record = Record { name, authorization, log_hash, resource, owner, backend, protocol_version };
        let session = Arc::new(Session::new(record, store.clock.monotonic()));
        store.table.insert(name.random(), Arc::clone(&session));
        store.observer.opened(&session);
        session
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").finish_non_exhaustive()
    }
}

/// Keeps a reservation's room taken while it lives, unless a session was opened in it. Made by
/// [`Reservation::held_room`].
#[derive(Clone)]
pub struct HeldRoom {
    _room: Arc<Room>,
}

impl fmt::Debug for HeldRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldRoom").finish_non_exhaustive()
    }
}

/// One taken place.
struct Room {
    store: Arc<Shared>,
    owner: Option<Arc<[u8]>>,
    kept: AtomicBool,
}

impl Room {
    fn take(store: &Arc<Shared>, owner: Owner<'_>) -> Result<Arc<Self>, StoreFull> {
        let owner = store.rooms.take(owner)?;
        Ok(Arc::new(Self { store: Arc::clone(store), owner, kept: AtomicBool::new(false) }))
    }

    /// The place now belongs to a session.
    fn keep(&self) -> (Arc<Shared>, Option<Arc<[u8]>>) {
        self.kept.store(true, Ordering::Release);
        (Arc::clone(&self.store), self.owner.clone())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !*self.kept.get_mut() {
            self.store.rooms.release(self.owner.as_ref());
        }
    }
}

#[cfg(test)]
mod tests;
