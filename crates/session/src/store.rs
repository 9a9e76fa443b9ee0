//! The store of the sessions of one process.

mod capacity;
mod in_use;
mod last_use_heap;
mod reservation;

use std::{
    fmt, ptr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use portcullis_metadata::{Clock, ResourceUri, Scopes};

use self::{capacity::Capacity, last_use_heap::Evicted};
pub use self::{
    in_use::InUse,
    reservation::{CapacityPermit, Reservation},
};
use crate::{
    error::{ReservationError, ResolveError},
    identifier::{self, Identifier, RandomPart, Rotation, SessionKey, SessionKeys, TaggedId},
    observer::{EndReason, SessionObserver},
    owner::Owner,
    session::{Session, Status, Timeouts, millis},
    settings::SessionSettings,
};

/// The sessions of one process. Clones share the store.
///
/// The store is bounded. At [`SessionSettings::max_total`], new sessions are rejected. At
/// [`SessionSettings::max_per_owner`], a new session evicts the owner's least recently used session that is not in use.
#[derive(Clone)]
pub struct SessionStore(Arc<Inner>);

struct Inner {
    keys: ArcSwap<SessionKeys>,
    /// Counts the key lists, up to [`UNCACHED_GENERATION`](crate::session::UNCACHED_GENERATION). It changes after `keys`.
    key_generation: AtomicU16,
    /// The key for hashes in logs and comparisons. It is not replaced with `keys`.
    log_key: SessionKey,
    timeouts: Timeouts,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn SessionObserver>,
    capacity: Capacity,
    /// The sessions by their first identifiers.
    table: DashMap<RandomPart, Arc<Session>>,
    /// The sessions by their later identifiers.
    rotated: DashMap<RandomPart, Found>,
}

/// A session and the number of the identifier by which it was found. The first identifier has number 0.
#[derive(Clone)]
struct Found {
    session: Arc<Session>,
    number: u32,
}

/// The maximum number of sessions that one sweep ends. The observer may take time for each.
const SWEEP_BATCH: usize = 1024;

impl SessionStore {
    /// How often [`sweep`](Self::sweep) should be called: 5 s.
    pub const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

    /// Returns an empty store.
    pub fn new(settings: SessionSettings, clock: Arc<dyn Clock>, observer: Arc<dyn SessionObserver>) -> Self {
        let SessionSettings { idle_timeout, lifetime, max_total, max_per_owner, keys } = settings;
        Self(Arc::new(Inner {
            log_key: keys.current().log_key(),
            keys: ArcSwap::from_pointee(keys),
            key_generation: AtomicU16::new(1),
            timeouts: Timeouts::new(idle_timeout, lifetime),
            clock,
            observer,
            capacity: Capacity::new(max_total, max_per_owner),
            table: DashMap::new(),
            rotated: DashMap::new(),
        }))
    }

    /// Replaces the keys. An identifier remains valid if its key is in both lists. Otherwise it is unknown.
    pub fn set_keys(&self, keys: SessionKeys) {
        self.0.keys.store(Arc::new(keys));
        // At `UNCACHED_GENERATION` the count stops.
        let next = |generation: u16| generation.checked_add(1);
        let _ = self.0.key_generation.fetch_update(Ordering::Release, Ordering::Relaxed, next);
    }

    /// Reserves capacity for a session until the reservation is opened or dropped. `scopes` are those of the caller's
    /// token; see [`InUse::rotated_identifier`].
    ///
    /// No session ends. At the owner's limit, the owner must have a session that is not in use for each of its reservations
    /// that could exceed the limit.
    ///
    /// # Errors
    /// Fails at a limit, or if the operating system returns no random bytes.
    pub fn reserve(
        &self,
        resource: &ResourceUri,
        owner: Owner<'_>,
        scopes: &Scopes,
    ) -> Result<Reservation, ReservationError> {
        let permit = CapacityPermit::reserve(&self.0, owner)?;
        let id = TaggedId::new(self.0.keys.load().current(), resource, owner).ok_or(ReservationError::NoRandomness)?;
        let scopes_hash = identifier::scopes_hash(&self.0.log_key, scopes);
        Ok(Reservation::new(permit, resource.clone(), id, scopes_hash))
    }

    /// Takes the session with this identifier, resource and owner into use, until the returned value is dropped. `scopes`
    /// are those of the caller's token; see [`InUse::rotated_identifier`]. Allocates nothing.
    ///
    /// The caller must have authenticated the owner. The identifier does not authenticate anything.
    ///
    /// # Errors
    /// - [`ResolveError::Unknown`] if the identifier was not issued to this owner for this resource. A session of another
    ///   owner is not affected.
    /// - [`ResolveError::Ended`] if the session has ended, or has 16,777,215 uses in progress.
    pub fn resolve(
        &self,
        resource: &ResourceUri,
        owner: Owner<'_>,
        scopes: &Scopes,
        identifier: &[u8],
    ) -> Result<InUse, ResolveError> {
        let id = TaggedId::parse(identifier).ok_or(ResolveError::Unknown)?;
        let generation = self.0.key_generation.load(Ordering::Acquire);
        let found = self.0.find(&id.random());
        let is_verified = found.as_ref().is_some_and(|found| found.session.is_verified(&id, generation));
        if !is_verified && !identifier::is_issued(&self.0.keys.load(), resource, owner, &id) {
            return Err(ResolveError::Unknown);
        }
        let Found { session, number } = found.ok_or(ResolveError::Ended)?;
        if !session.belongs_to(resource, owner) {
            return Err(ResolveError::Unknown);
        }
        if !is_verified {
            session.set_verified(&id, generation);
        }
        let now = self.0.clock.monotonic();
        if session.mark_used(number, now) && self.0.is_active(&session, session.begin_use(now, self.0.timeouts)) {
            let scopes_hash = identifier::scopes_hash(&self.0.log_key, scopes);
            Ok(InUse::new(self.clone(), session, number, scopes_hash))
        } else {
            Err(ResolveError::Ended)
        }
    }

    /// Ends one use of a session.
    fn end_use(&self, session: &Session) {
        self.0.is_active(session, session.end_use(self.0.clock.monotonic(), self.0.timeouts));
    }

    /// See [`InUse::rotated_identifier`]. `number` is that of the identifier with which the use began.
    fn rotated_identifier(&self, session: &Arc<Session>, number: u32, scopes_hash: u64) -> Option<Identifier> {
        let newest = session.newest_rotation();
        if newest.map_or(0, |newest| newest.number) == number {
            let newest_scopes = newest.map_or(session.scopes_hash(), |newest| newest.scopes_hash);
            if scopes_hash == newest_scopes {
                return None;
            }
            let now = millis(self.0.clock.monotonic());
            if newest.is_some_and(|newest| !newest.may_be_rotated(now)) {
                return None;
            }
            self.0.rotate(session, number.checked_add(1)?, scopes_hash, now)?;
        }
        (!session.has_ended()).then(|| session.identifier())
    }

    /// Ends a session, even if it is in use. Returns whether this call ended it. Nothing happens if the session has already
    /// ended or belongs to another store.
    pub fn end(&self, session: &Session, reason: EndReason) -> bool {
        let is_stored = self.0.table.get(&session.table_key()).is_some_and(|stored| ptr::eq(&**stored, session));
        let has_ended = is_stored && session.end();
        if has_ended {
            self.0.remove(session, reason);
        }
        has_ended
    }

    /// Returns all sessions in any order, for example to end them at a shutdown.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.0.table.iter().map(|stored| Arc::clone(&stored)).collect()
    }

    /// Ends expired sessions, at most 1,024 per call. Returns their number. After a full batch, more sessions may have
    /// expired.
    ///
    /// Call this periodically. [`resolve`](Self::resolve) checks the timeouts itself.
    pub fn sweep(&self) -> usize {
        let (now, timeouts) = (self.0.clock.monotonic(), self.0.timeouts);
        let expired: Vec<_> = self
            .0
            .table
            .iter()
            .filter(|stored| stored.is_expired(now, timeouts))
            .take(SWEEP_BATCH)
            .map(|stored| Arc::clone(&stored))
            .collect();
        let mut ended = 0;
        for session in expired {
            // The session may have been used or ended in the meantime.
            if let Status::JustEnded(reason) = session.expire(now, timeouts) {
                self.0.remove(&session, reason);
                ended += 1;
            }
        }
        self.0.remove_retired(now);
        ended
    }

    /// Returns the number of sessions, without reservations.
    pub fn len(&self) -> usize {
        self.0.table.len()
    }

    /// Returns whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.0.table.is_empty()
    }
}

impl Inner {
    fn find(&self, random: &RandomPart) -> Option<Found> {
        match self.table.get(random) {
            Some(stored) => Some(Found { session: Arc::clone(&stored), number: 0 }),
            None => self.rotated.get(random).map(|stored| stored.clone()),
        }
    }

    /// Adds an identifier to a session, unless another call has just done so or the session has ended. Returns `None` if the
    /// operating system returns no random bytes.
    fn rotate(&self, session: &Arc<Session>, number: u32, scopes_hash: u64, now: u64) -> Option<()> {
        let id = TaggedId::new(self.keys.load().current(), session.resource(), session.owner())?;
        // The identifier must resolve before a client learns it, and no lock of the table is taken under the session's.
        self.rotated.insert(id.random(), Found { session: Arc::clone(session), number });
        let rotation = Rotation::new(id, number, scopes_hash, now);
        match session.rotations().add(rotation, now, || !session.has_ended()) {
            Ok(retired) => retired.iter().for_each(|random| drop(self.rotated.remove(random))),
            Err(not_added) => drop(self.rotated.remove(&not_added)),
        }
        Some(())
    }

    /// Removes retired identifiers, a bounded number per call.
    fn remove_retired(&self, now: Duration) {
        let retired: Vec<RandomPart> = self
            .rotated
            .iter()
            .filter(|stored| stored.session.is_retired(stored.number, now))
            .take(SWEEP_BATCH)
            .map(|stored| *stored.key())
            .collect();
        for random in &retired {
            self.rotated.remove(random);
        }
    }

    /// Returns whether a session is active after an attempt to use it. Removes a session that the attempt has ended.
    fn is_active(&self, session: &Session, status: Status) -> bool {
        if let Status::JustEnded(reason) = status {
            self.remove(session, reason);
        }
        status == Status::Active
    }

    /// Records a session that is in use. At the owner's limit another session ends.
    fn record(&self, session: &Arc<Session>) -> Result<(), ReservationError> {
        // The new session is in use, so no eviction can select it before it is in the table.
        let evicted = self.capacity.record(session)?;
        self.table.insert(session.table_key(), Arc::clone(session));
        self.observer.opened(session);
        if let Some(Evicted::JustEnded { session, last_used }) = evicted {
            let reason = session.expiry_reason_if_unused(last_used, self.clock.monotonic(), self.timeouts);
            self.remove(&session, reason.unwrap_or(EndReason::Evicted));
        }
        Ok(())
    }

    /// Removes a session that has just ended. Only the caller that ended it calls this, so it happens once. The observer is
    /// called last, without a lock.
    fn remove(&self, session: &Session, reason: EndReason) {
        self.table.remove(&session.table_key());
        // No identifier is added to an ended session.
        for random in session.take_rotations() {
            self.rotated.remove(&random);
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

#[cfg(test)]
mod tests;
