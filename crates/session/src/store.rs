use std::{
    fmt, ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use portcullis_metadata::{Clock, ResourceUri, Scopes};

use crate::{
    EndReason, Identifier, InUse, Owner, ReservationError, ResolveError, Session, SessionKey, SessionKeys,
    SessionObserver, SessionSettings,
    by_last_use::Evicted,
    capacity::Capacity,
    identifier::{self, Name, Random},
    lineage::Successor,
    session::{Life, Record, Timeouts, millis},
};

/// The sessions of one process. Cheap to clone; clones share everything.
///
/// Bounded by [`SessionSettings::max_total`], at which new sessions are refused, and by [`SessionSettings::max_per_owner`], at
/// which the owner's least recently used session that is not in use ends for the new one.
#[derive(Clone)]
pub struct SessionStore(Arc<Shared>);

struct Shared {
    keys: ArcSwap<SessionKeys>,
    /// Counts the lists of keys, up to [`UNPROVABLE`](crate::session::UNPROVABLE). It changes after the list has.
    keys_number: AtomicU16,
    /// For hashes that are compared and logged here; not replaced together with the keys.
    marks: SessionKey,
    timeouts: Timeouts,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn SessionObserver>,
    capacity: Capacity,
    /// Each session under its first identifier, for as long as it lives.
    table: DashMap<Random, Arc<Session>>,
    /// The sessions that were given a new identifier once more, under each of these, with its number.
    renewed: DashMap<Random, Found>,
}

/// A session, and which of its identifiers it was found by: 0 the first, 1 its successor, and so on.
#[derive(Clone)]
struct Found {
    session: Arc<Session>,
    number: u32,
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
            keys_number: AtomicU16::new(1),
            timeouts: Timeouts::new(idle_timeout, lifetime),
            clock,
            observer,
            capacity: Capacity::new(max_total, max_per_owner),
            table: DashMap::new(),
            renewed: DashMap::new(),
        }))
    }

    /// Replaces the keys. Sessions whose identifiers were tagged with a key that is in both lists go on; identifiers of
    /// a key that no longer is are unknown.
    pub fn set_keys(&self, keys: SessionKeys) {
        self.0.keys.store(Arc::new(keys));
        let next = |number: u16| number.checked_add(1);
        // At the last number, `UNPROVABLE`, it stays.
        let _ = self.0.keys_number.fetch_update(Ordering::Release, Ordering::Relaxed, next);
    }

    /// Reserves capacity for a session until the reservation is opened or dropped. `scopes` are what the caller's token
    /// allows: other ones will get the session a new identifier.
    ///
    /// No session ends by it. At the owner's limit it requires a session of the owner that is not in use, and another one for each
    /// other reservation of the owner that could exceed the limit.
    ///
    /// # Errors
    /// At a limit, or when the operating system gives no random bytes.
    pub fn reserve(
        &self,
        resource: &ResourceUri,
        owner: Owner<'_>,
        scopes: &Scopes,
    ) -> Result<Reservation, ReservationError> {
        let place = Place::reserve(&self.0, owner)?;
        let name = Name::new(self.0.keys.load().current(), resource, owner).ok_or(ReservationError::NoRandomness)?;
        let authorization = identifier::authorization(&self.0.marks, scopes);
        Ok(Reservation { place, resource: resource.clone(), name, authorization })
    }

    /// Takes the active session of this identifier, resource and owner into use, until the returned value is dropped.
    /// `scopes` are what the caller's token allows; see [`InUse::rotated_identifier`]. Allocates nothing.
    ///
    /// The caller has to have authenticated the owner: the identifier proves nothing.
    ///
    /// # Errors
    /// [`ResolveError::Unknown`] for everything that was not issued to this owner for this resource, without any
    /// effect on whosever it is; [`ResolveError::Ended`] for the owner's own identifier when its session has ended, and when
    /// it has 16,777,215 uses already.
    pub fn resolve(
        &self,
        resource: &ResourceUri,
        owner: Owner<'_>,
        scopes: &Scopes,
        identifier: &[u8],
    ) -> Result<InUse, ResolveError> {
        let name = Name::parse(identifier).ok_or(ResolveError::Unknown)?;
        let keys_number = self.0.keys_number.load(Ordering::Acquire);
        let found = self.0.find(&name.random());
        let is_proved = found.as_ref().is_some_and(|found| found.session.is_proved(&name, keys_number));
        if !is_proved && !identifier::is_issued(&self.0.keys.load(), resource, owner, &name) {
            return Err(ResolveError::Unknown);
        }
        let Found { session, number } = found.ok_or(ResolveError::Ended)?;
        if !session.belongs_to(resource, owner) {
            return Err(ResolveError::Unknown);
        }
        if !is_proved {
            session.prove(&name, keys_number);
        }
        let now = self.0.clock.monotonic();
        if session.use_number(number, now) && self.0.is_active(&session, session.take_into_use(now, self.0.timeouts)) {
            let authorization = identifier::authorization(&self.0.marks, scopes);
            Ok(InUse::new(self.clone(), session, number, authorization))
        } else {
            Err(ResolveError::Ended)
        }
    }

    /// Ends one use of a session.
    pub(crate) fn leave_use(&self, session: &Session) {
        self.0.is_active(session, session.leave_use(self.0.clock.monotonic(), self.0.timeouts));
    }

    /// See [`InUse::rotated_identifier`]. `number` is that of the identifier which the use came with.
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

    /// Ends a session, in use or not. Returns whether it ended by this call: nothing happens when it has ended already or is
    /// another store's.
    pub fn end(&self, session: &Session, reason: EndReason) -> bool {
        let is_here = self.0.table.get(&session.random()).is_some_and(|held| ptr::eq(&**held, session));
        let ends = is_here && session.end();
        if ends {
            self.0.remove(session, reason);
        }
        ends
    }

    /// All sessions at this moment, in no order: to end them at a shutdown.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.0.table.iter().map(|held| Arc::clone(&held)).collect()
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
            if let Life::JustEnded(reason) = session.expire(now, timeouts) {
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
    fn find(&self, random: &Random) -> Option<Found> {
        match self.table.get(random) {
            Some(held) => Some(Found { session: Arc::clone(&held), number: 0 }),
            None => self.renewed.get(random).map(|held| held.clone()),
        }
    }

    /// Gives a session its next identifier, unless somebody else just did, or it has ended. Nothing when the operating
    /// system has no random bytes.
    fn renew(&self, session: &Arc<Session>, number: u32, authorization: u64, now: u64) -> Option<()> {
        let name = Name::new(self.keys.load().current(), session.resource(), session.owner())?;
        // It resolves before anybody can be told of it, and no lock of the table is taken under the session's.
        self.renewed.insert(name.random(), Found { session: Arc::clone(session), number });
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
            .filter(|held| held.session.is_retired(held.number, now))
            .take(SWEEP_BATCH)
            .map(|held| *held.key())
            .collect();
        for random in &retired {
            self.renewed.remove(random);
        }
    }

    /// Whether a session is active after an attempt to use it. One that ended by the attempt is removed.
    fn is_active(&self, session: &Session, life: Life) -> bool {
        if let Life::JustEnded(reason) = life {
            self.remove(session, reason);
        }
        life == Life::Active
    }

    /// Makes a session known that is in use by its opening. At the owner's limit another one ends.
    fn record(&self, session: &Arc<Session>) -> Result<(), ReservationError> {
        // No eviction can choose the new session before it is in the table, as it is in use.
        let evicted = self.capacity.record(session)?;
        self.table.insert(session.random(), Arc::clone(session));
        self.observer.opened(session);
        if let Some(Evicted::JustEnded { session, last_used }) = evicted {
            let reason = session.over_when_unused(last_used, self.clock.monotonic(), self.timeouts);
            self.remove(&session, reason.unwrap_or(EndReason::Evicted));
        }
        Ok(())
    }

    /// Removes a session that has just ended. Only the caller that ended it calls this, so that it happens once. The observer is
    /// called last, without a lock.
    fn remove(&self, session: &Session, reason: EndReason) {
        self.table.remove(&session.random());
        // As it has ended, no identifier is added any more.
        for random in session.take_later() {
            self.renewed.remove(&random);
        }
        self.capacity.remove(session);
        self.observer.ended(session, reason);
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Capacity for one session, given back when dropped. Made by [`SessionStore::reserve`].
#[must_use = "dropping a reservation gives its capacity back"]
pub struct Reservation {
    place: Arc<Place>,
    resource: ResourceUri,
    name: Name,
    authorization: u64,
}

impl Reservation {
    /// Keeps the capacity reserved beyond the reservation: for whoever goes on with the opening when nobody waits for it any
    /// more.
    pub fn capacity_permit(&self) -> CapacityPermit {
        CapacityPermit { _place: Arc::clone(&self.place) }
    }

    /// Records the session, active and in use from this moment. `backend` is whatever the backend knows it by, opaque here;
    /// `protocol_version` the one agreed on, if it is known by now ([`Session::set_protocol_version`]).
    ///
    /// At the owner's limit, the owner's least recently used session that is not in use ends with [`EndReason::Evicted`].
    ///
    /// # Errors
    /// [`ReservationError::OwnerLimit`] when the owner is at the limit and has taken all sessions into use since the reservation. The
    /// caller then ends the backend's session.
    pub fn open(self, backend: Box<[u8]>, protocol_version: Option<&'static str>) -> Result<InUse, ReservationError> {
        let Self { place, resource, name, authorization } = self;
        let store = &place.store;
        let log_hash = identifier::log_hash(&store.marks, &name.random());
        let owner = place.owner.clone();
        let record = Record { name, authorization, log_hash, resource, owner, backend, protocol_version };
        let session = Arc::new(Session::new(record, store.clock.monotonic()));
        store.record(&session)?;
        place.is_recorded.store(true, Ordering::Release);
        Ok(InUse::new(SessionStore(Arc::clone(store)), session, 0, authorization))
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").finish_non_exhaustive()
    }
}

/// Keeps a reservation's capacity reserved while it lives, unless a session was opened in it. Made by
/// [`Reservation::capacity_permit`].
#[derive(Clone)]
pub struct CapacityPermit {
    _place: Arc<Place>,
}

impl fmt::Debug for CapacityPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityPermit").finish_non_exhaustive()
    }
}

/// The capacity of one session.
struct Place {
    store: Arc<Shared>,
    owner: Option<Arc<[u8]>>,
    /// It belongs to a session now.
    is_recorded: AtomicBool,
}

impl Place {
    fn reserve(store: &Arc<Shared>, owner: Owner<'_>) -> Result<Arc<Self>, ReservationError> {
        let owner = store.capacity.reserve(owner)?;
        Ok(Arc::new(Self { store: Arc::clone(store), owner, is_recorded: AtomicBool::new(false) }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !*self.is_recorded.get_mut() {
            self.store.capacity.cancel(self.owner.as_ref());
        }
    }
}

#[cfg(test)]
mod tests;
