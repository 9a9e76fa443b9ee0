use std::{fmt, ptr, sync::Arc};

use dashmap::DashMap;
use portcullis_metadata::{Clock, ResourceUri};

use crate::{
    EndReason, InUse, Owner, Session, SessionKey, SessionObserver, SessionSettings, StoreFull, Unresolved,
    identifier::{self, Random},
    room::Rooms,
    session::{Life, Record, Timeouts},
};

/// The sessions of one process. Cheap to clone; clones share everything.
///
/// Bounded by [`SessionSettings::max_total`] and [`SessionSettings::max_per_owner`]: at either, new sessions are
/// refused and existing ones stay.
#[derive(Clone)]
pub struct SessionStore(Arc<Shared>);

struct Shared {
    key: SessionKey,
    timeouts: Timeouts,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn SessionObserver>,
    rooms: Rooms,
    table: DashMap<Random, Arc<Session>>,
}

/// How many sessions one sweep ends at most, since each end may cost its observer something.
const SWEEP_BATCH: usize = 1024;

impl SessionStore {
    /// An empty store.
    pub fn new(settings: SessionSettings, clock: Arc<dyn Clock>, observer: Arc<dyn SessionObserver>) -> Self {
        let SessionSettings { idle_timeout, lifetime, max_total, max_per_owner, key } = settings;
        Self(Arc::new(Shared {
            key,
            timeouts: Timeouts { idle: idle_timeout, lifetime },
            clock,
            observer,
            rooms: Rooms::new(max_total, max_per_owner),
            table: DashMap::new(),
        }))
    }

    /// Holds room for a session until the reservation is opened or dropped.
    ///
    /// # Errors
    /// At a limit, or when the operating system gives no random bytes.
    pub fn reserve(&self, resource: &ResourceUri, owner: Owner<'_>) -> Result<Reservation, StoreFull> {
        let room = Room::take(&self.0, owner)?;
        let random = identifier::random().ok_or(StoreFull::NoRandomness)?;
        let identifier = identifier::build(&self.0.key, resource, owner, &random);
        Ok(Reservation { room, resource: resource.clone(), random, identifier })
    }

    /// The active session of this identifier, resource and owner; its idle time starts anew. Allocates nothing.
    ///
    /// The caller has to have authenticated the owner: the identifier proves nothing.
    ///
    /// # Errors
    /// [`Unresolved::Unknown`] for everything that was not issued to this owner for this resource, without any
    /// effect on whosever it is; [`Unresolved::Ended`] for the owner's own identifier when its session has ended.
    pub fn resolve(
        &self,
        resource: &ResourceUri,
        owner: Owner<'_>,
        identifier: &[u8],
    ) -> Result<Arc<Session>, Unresolved> {
        let random = identifier::open(&self.0.key, resource, owner, identifier).ok_or(Unresolved::Unknown)?;
        let session = self.0.table.get(&random).map(|held| Arc::clone(&held)).ok_or(Unresolved::Ended)?;
        if !session.belongs_to(resource, owner) {
            return Err(Unresolved::Unknown);
        }
        if self.touch(&session) { Ok(session) } else { Err(Unresolved::Ended) }
    }

    /// Keeps a session from going idle for as long as the returned value lives. Its lifetime still ends it.
    pub fn hold(&self, session: Arc<Session>) -> InUse {
        InUse::new(self.clone(), session)
    }

    /// Counts this moment as a use of the session. Whether it is still active.
    pub(crate) fn touch(&self, session: &Session) -> bool {
        match session.touch(self.0.clock.monotonic(), self.0.timeouts) {
            Life::Active => true,
            Life::Ended => false,
            Life::JustExpired(reason) => {
                self.0.remove(session, reason);
                false
            }
        }
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
    /// Whoever takes the session out of the table is the one that tells the observer, after the lock is gone.
    fn remove(&self, session: &Session, reason: EndReason) {
        if self.table.remove_if(session.random(), |_, held| ptr::eq(&**held, session)).is_some() {
            session.close();
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
    room: Room,
    resource: ResourceUri,
    random: Random,
    identifier: Box<str>,
}

impl Reservation {
    /// Records the session, active from this moment. `backend` is whatever the backend knows it by, opaque here;
    /// `protocol_version` the one agreed on.
    pub fn open(self, backend: Box<[u8]>, protocol_version: Option<Box<str>>) -> Arc<Session> {
        let Self { room, resource, random, identifier } = self;
        let (store, owner) = room.keep();
        let log_hash = identifier::log_hash(&store.key, &random);
        let record = Record { identifier, random, log_hash, resource, owner, backend, protocol_version };
        let session = Arc::new(Session::new(record, store.clock.monotonic()));
        store.table.insert(random, Arc::clone(&session));
        store.observer.opened(&session);
        session
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").finish_non_exhaustive()
    }
}

/// One taken place.
struct Room {
    store: Arc<Shared>,
    owner: Option<Arc<[u8]>>,
    kept: bool,
}

impl Room {
    fn take(store: &Arc<Shared>, owner: Owner<'_>) -> Result<Self, StoreFull> {
        let owner = store.rooms.take(owner)?;
        Ok(Self { store: Arc::clone(store), owner, kept: false })
    }

    /// The place now belongs to a session.
    fn keep(mut self) -> (Arc<Shared>, Option<Arc<[u8]>>) {
        self.kept = true;
        (Arc::clone(&self.store), self.owner.take())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.kept {
            self.store.rooms.release(self.owner.as_ref());
        }
    }
}

#[cfg(test)]
mod tests;
