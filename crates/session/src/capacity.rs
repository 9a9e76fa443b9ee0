//! How many sessions there may be, in all and for each owner, and the index of sessions by owner.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use dashmap::{DashMap, Entry};

use crate::{
    Owner, ReservationError, Session,
    by_last_use::{ByLastUse, Evicted},
};

/// Counts sessions and reservations, in all and by owner, and finds the session of an owner that is evicted for a new one.
///
/// A session is reserved first and recorded when it exists. An owner never has more than `max_per_owner` sessions, and
/// never more than as many reservations. A reservation at that limit requires one session that is not in use for each
/// reservation that could exceed it; which session is evicted, if any, is decided when the new one is recorded.
/// An owner without sessions and reservations has no entry. [`Owner::Anonymous`] has none ever, and no limit of its own.
pub(crate) struct Capacity {
    max_total: usize,
    max_per_owner: usize,
    total: AtomicUsize,
    owners: DashMap<Arc<[u8]>, Owned>,
}

/// What one owner has. Most owners have one session, which takes no memory of its own here.
enum Owned {
    Single(Arc<Session>),
    Any(Box<Any>),
}

#[derive(Default)]
struct Any {
    reserved: usize,
    sessions: ByLastUse,
}

impl Capacity {
    pub(crate) fn new(max_total: usize, max_per_owner: usize) -> Self {
        Self { max_total, max_per_owner, total: AtomicUsize::new(0), owners: DashMap::new() }
    }

    /// Reserves a session for `owner`, without ending one. Returns the owner's encoding, shared by all its sessions;
    /// `None` for [`Owner::Anonymous`].
    pub(crate) fn reserve(&self, owner: Owner<'_>) -> Result<Option<Arc<[u8]>>, ReservationError> {
        // The owner's limit first, so that an owner at its own limit cannot take a place from others even for a moment.
        let owner = self.reserve_of_owner(owner)?;
        let reserved = self
            .total
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| (taken < self.max_total).then_some(taken + 1));
        if reserved.is_err() {
            self.cancel_of_owner(owner.as_ref());
            return Err(ReservationError::TotalLimit);
        }
        Ok(owner)
    }

    /// Gives back a reservation that no session was recorded for.
    pub(crate) fn cancel(&self, owner: Option<&Arc<[u8]>>) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        self.cancel_of_owner(owner);
    }

    /// Records a session in the place of a reservation of its owner. At the owner's limit its least recently used session that is
    /// not in use ends, and is returned: it keeps its place in the total until [`remove`](Self::remove). The new session
    /// itself must be in use.
    ///
    /// # Errors
    /// [`ReservationError::OwnerLimit`] when all sessions of the owner have been taken into use since the reservation, which stays.
    pub(crate) fn record(&self, session: &Arc<Session>) -> Result<Option<Evicted>, ReservationError> {
        let Some(owner) = session.encoded_owner() else { return Ok(None) };
        let mut owned = self.owners.entry(Arc::clone(owner)).or_default();
        owned.change(|any| {
            let evicted = if any.sessions.len() >= self.max_per_owner {
                Some(any.sessions.evict().ok_or(ReservationError::OwnerLimit)?)
            } else {
                None
            };
            any.reserved = any.reserved.saturating_sub(1);
            any.sessions.insert(Arc::clone(session));
            Ok(evicted)
        })
    }

    /// Gives back the place of a session that has ended.
    pub(crate) fn remove(&self, session: &Session) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        if let Some(owner) = session.encoded_owner() {
            self.change_or_remove(owner, |any| any.sessions.remove(session));
        }
    }

    fn reserve_of_owner(&self, owner: Owner<'_>) -> Result<Option<Arc<[u8]>>, ReservationError> {
        if owner == Owner::Anonymous {
            return Ok(None);
        }
        match self.owners.entry(owner.encode().parts().concat().into()) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().change(|any| any.reserve(self.max_per_owner))?;
                Ok(Some(Arc::clone(entry.key())))
            }
            Entry::Vacant(entry) => {
                let shared = Arc::clone(entry.key());
                let mut any = Any::default();
                any.reserve(self.max_per_owner)?;
                entry.insert(Owned::Any(Box::new(any)));
                Ok(Some(shared))
            }
        }
    }

    fn cancel_of_owner(&self, owner: Option<&Arc<[u8]>>) {
        if let Some(owner) = owner {
            self.change_or_remove(owner, |any| any.reserved = any.reserved.saturating_sub(1));
        }
    }

    fn change_or_remove(&self, owner: &Arc<[u8]>, change: impl FnOnce(&mut Any)) {
        self.owners.remove_if_mut(owner, |_, owned| {
            owned.change(change);
            matches!(owned, Owned::Any(any) if any.reserved == 0 && any.sessions.len() == 0)
        });
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.total.load(Ordering::Acquire), self.owners.len())
    }
}

impl Any {
    /// Counts one more reservation, if enough sessions could be evicted for those that could exceed the limit.
    fn reserve(&mut self, max: usize) -> Result<(), ReservationError> {
        let exceeding = (self.reserved + self.sessions.len() + 1).saturating_sub(max);
        if !self.sessions.has_unused(exceeding) {
            return Err(ReservationError::OwnerLimit);
        }
        self.reserved += 1;
        Ok(())
    }
}

impl Owned {
    fn change<T>(&mut self, change: impl FnOnce(&mut Any) -> T) -> T {
        let mut any = match mem::take(self) {
            Self::Any(any) => any,
            Self::Single(session) => {
                let mut any = Box::<Any>::default();
                any.sessions.insert(session);
                any
            }
        };
        let result = change(&mut any);
        let single = if any.reserved == 0 { any.sessions.take_single() } else { None };
        *self = single.map_or(Self::Any(any), Self::Single);
        result
    }
}

impl Default for Owned {
    fn default() -> Self {
        Self::Any(Box::default())
    }
}
