//! The limits of sessions, in total and per owner, and the index of sessions by owner.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use dashmap::{DashMap, Entry};

use super::last_use_heap::{Evicted, LastUseHeap};
use crate::{error::ReservationError, owner::Owner, session::Session};

/// Counts sessions and reservations, in total and per owner, and selects the session that a new one evicts.
///
/// A session is reserved before it is recorded. An owner never has more than `max_per_owner` sessions, nor more than
/// `max_per_owner` reservations. At the limit, the owner must have a session that is not in use for each reservation that
/// could exceed it. The evicted session is selected when the new one is recorded.
///
/// An owner without sessions and reservations has no entry. [`Owner::Anonymous`] has no entry and no limit of its own.
pub(super) struct Capacity {
    max_total: usize,
    max_per_owner: usize,
    total: AtomicUsize,
    owners: DashMap<Arc<[u8]>, OwnerEntry>,
}

/// The sessions and reservations of one owner. Most owners have one session, which needs no memory here.
enum OwnerEntry {
    Single(Arc<Session>),
    Many(Box<OwnerSessions>),
}

#[derive(Default)]
struct OwnerSessions {
    reserved: usize,
    sessions: LastUseHeap,
}

impl Capacity {
    pub(super) fn new(max_total: usize, max_per_owner: usize) -> Self {
        Self { max_total, max_per_owner, total: AtomicUsize::new(0), owners: DashMap::new() }
    }

    /// Reserves a session for `owner`. No session ends. Returns the owner's encoding, which all its sessions share; `None`
    /// for [`Owner::Anonymous`].
    pub(super) fn reserve(&self, owner: Owner<'_>) -> Result<Option<Arc<[u8]>>, ReservationError> {
        // First the owner's limit, so that an owner at its limit never reduces the capacity of others.
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

    /// Releases a reservation without a recorded session.
    pub(super) fn cancel(&self, owner: Option<&Arc<[u8]>>) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        self.cancel_of_owner(owner);
    }

    /// Turns a reservation into a session, which must be in use. At the owner's limit, the owner's least recently used
    /// session that is not in use ends. It is returned and counts in the total until [`remove`](Self::remove).
    ///
    /// # Errors
    /// Returns [`ReservationError::OwnerLimit`] if all sessions of the owner have been taken into use since the reservation.
    /// The reservation remains.
    pub(super) fn record(&self, session: &Arc<Session>) -> Result<Option<Evicted>, ReservationError> {
        let Some(owner) = session.encoded_owner() else { return Ok(None) };
        let mut entry = self.owners.entry(Arc::clone(owner)).or_default();
        entry.change(|owned| {
            let evicted = if owned.sessions.len() >= self.max_per_owner {
                Some(owned.sessions.evict().ok_or(ReservationError::OwnerLimit)?)
            } else {
                None
            };
            owned.reserved = owned.reserved.saturating_sub(1);
            owned.sessions.insert(Arc::clone(session));
            Ok(evicted)
        })
    }

    /// Releases the capacity of an ended session.
    pub(super) fn remove(&self, session: &Session) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        if let Some(owner) = session.encoded_owner() {
            self.change_or_remove(owner, |owned| owned.sessions.remove(session));
        }
    }

    fn reserve_of_owner(&self, owner: Owner<'_>) -> Result<Option<Arc<[u8]>>, ReservationError> {
        if owner == Owner::Anonymous {
            return Ok(None);
        }
        match self.owners.entry(owner.encode().parts().concat().into()) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().change(|owned| owned.reserve(self.max_per_owner))?;
                Ok(Some(Arc::clone(entry.key())))
            }
            Entry::Vacant(entry) => {
                let shared = Arc::clone(entry.key());
                let mut owned = OwnerSessions::default();
                owned.reserve(self.max_per_owner)?;
                entry.insert(OwnerEntry::Many(Box::new(owned)));
                Ok(Some(shared))
            }
        }
    }

    fn cancel_of_owner(&self, owner: Option<&Arc<[u8]>>) {
        if let Some(owner) = owner {
            self.change_or_remove(owner, |owned| owned.reserved = owned.reserved.saturating_sub(1));
        }
    }

    fn change_or_remove(&self, owner: &Arc<[u8]>, change: impl FnOnce(&mut OwnerSessions)) {
        self.owners.remove_if_mut(owner, |_, entry| {
            entry.change(change);
            matches!(entry, OwnerEntry::Many(owned) if owned.reserved == 0 && owned.sessions.len() == 0)
        });
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.total.load(Ordering::Acquire), self.owners.len())
    }
}

impl OwnerSessions {
    /// Adds a reservation, if enough sessions can be evicted for the reservations that could exceed the limit.
    fn reserve(&mut self, max: usize) -> Result<(), ReservationError> {
        let exceeding = (self.reserved + self.sessions.len() + 1).saturating_sub(max);
        if !self.sessions.has_unused(exceeding) {
            return Err(ReservationError::OwnerLimit);
        }
        self.reserved += 1;
        Ok(())
    }
}

impl OwnerEntry {
    fn change<T>(&mut self, change: impl FnOnce(&mut OwnerSessions) -> T) -> T {
        let mut owned = match mem::take(self) {
            Self::Many(owned) => owned,
            Self::Single(session) => {
                let mut owned = Box::<OwnerSessions>::default();
                owned.sessions.insert(session);
                owned
            }
        };
        let result = change(&mut owned);
        let single = if owned.reserved == 0 { owned.sessions.take_single() } else { None };
        *self = single.map_or(Self::Many(owned), Self::Single);
        result
    }
}

impl Default for OwnerEntry {
    fn default() -> Self {
        Self::Many(Box::default())
    }
}
