//! [`Capacity`]: the limits on sessions, in total and per owner, and the sessions of each owner.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use dashmap::DashMap;

use super::last_use_heap::{Evicted, LastUseHeap};
use crate::{error::ReservationError, owner::Owner, scope::ScopeId, session::Session};

/// Counts sessions and reservations, in total and per owner, and selects the session that a new one evicts.
///
/// A session is first reserved and then recorded. An owner never has more than `max_per_owner` sessions, nor more than
/// `max_per_owner` reservations. A reservation that would exceed the limit requires a session of the owner that is not in
/// use, and each such reservation requires another one. The session to evict is selected when the new one is recorded.
///
/// An owner without sessions and reservations has no entry. [`Owner::Anonymous`] never has an entry, and no limit per owner.
pub(super) struct Capacity {
    max_total: usize,
    max_per_owner: usize,
    total: AtomicUsize,
    owners: DashMap<ScopeId, OwnerEntry>,
}

/// The sessions and reservations of one owner. Most owners have a single session, which needs no allocation.
enum OwnerEntry {
    /// One session, and no reservation.
    Single(Arc<Session>),
    /// Any other numbers of both.
    Many(Box<OwnerSessions>),
}

#[derive(Default)]
struct OwnerSessions {
    /// The encoding of the owner, which all of its sessions share.
    encoded: Option<Arc<[u8]>>,
    /// The number of reservations.
    reserved: usize,
    sessions: LastUseHeap,
}

impl Capacity {
    /// Returns the limits, with nothing reserved. The limit per owner also counts sessions of other processes; see
    /// [`reserve`](Self::reserve).
    pub(super) fn new(max_total: usize, max_per_owner: usize) -> Self {
        Self { max_total, max_per_owner, total: AtomicUsize::new(0), owners: DashMap::new() }
    }

    /// Reserves a session for `owner`, who has `elsewhere` sessions that only other processes have. Returns the encoding of the
    /// owner, which all of its sessions share; `None` for [`Owner::Anonymous`].
    ///
    /// # Errors
    /// Fails at the limit of all sessions, and at the owner's limit if no further session of the owner can be evicted.
    pub(super) fn reserve(&self, owner: Owner<'_>, elsewhere: usize) -> Result<Option<Arc<[u8]>>, ReservationError> {
        // The owner's limit comes first, so that an owner at its limit does not take capacity from others.
        let owner = self.reserve_of_owner(owner, self.limit_here(elsewhere))?;
        let reserved = self
            .total
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| (taken < self.max_total).then_some(taken + 1));
        if reserved.is_err() {
            self.cancel_of_owner(owner.as_deref());
            return Err(ReservationError::TotalLimit);
        }
        Ok(owner)
    }

    /// Releases a reservation whose session was not recorded.
    pub(super) fn cancel(&self, encoded_owner: Option<&[u8]>) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        self.cancel_of_owner(encoded_owner);
    }

    /// Replaces a reservation by its session, which must be in use. At the owner's limit, ends the owner's least recently used
    /// session that is not in use, and above the limit one more, and returns them. They count in the total until
    /// [`remove`](Self::remove).
    ///
    /// # Errors
    /// Returns [`ReservationError::OwnerLimit`] if all sessions of the owner have been taken into use since the reservation.
    /// The reservation continues.
    pub(super) fn record(&self, session: &Arc<Session>, elsewhere: usize) -> Result<Vec<Evicted>, ReservationError> {
        let mut evicted = Vec::new();
        if session.encoded_owner().is_none() {
            return Ok(evicted);
        }
        let limit = self.limit_here(elsewhere);
        let mut entry = self.owners.entry(session.owner_id()).or_default();
        entry.change(|owned| {
            if owned.sessions.len() >= limit {
                evicted.push(owned.sessions.evict().ok_or(ReservationError::OwnerLimit)?);
                // Processes that do not know of each other's latest sessions exceed the limit. One more ends for each new one.
                if owned.sessions.len() >= limit {
                    evicted.extend(owned.sessions.evict());
                }
            }
            owned.reserved = owned.reserved.saturating_sub(1);
            owned.sessions.insert(Arc::clone(session));
            Ok(evicted)
        })
    }

    /// Releases the capacity of an ended session.
    pub(super) fn remove(&self, session: &Session) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        if session.encoded_owner().is_some() {
            self.change_or_remove(session.owner_id(), |owned| owned.sessions.remove(session));
        }
    }

    /// Returns the owner's limit in this process: what other processes leave of it, but at least one.
    fn limit_here(&self, elsewhere: usize) -> usize {
        self.max_per_owner.saturating_sub(elsewhere).max(1).min(self.max_per_owner)
    }

    /// Adds a reservation of an owner whose limit in this process is `limit`.
    fn reserve_of_owner(&self, owner: Owner<'_>, limit: usize) -> Result<Option<Arc<[u8]>>, ReservationError> {
        if owner == Owner::Anonymous {
            return Ok(None);
        }
        let mut entry = self.owners.entry(ScopeId::of_owner(owner)).or_default();
        let reserved = entry.change(|owned| {
            owned.reserve(limit)?;
            Ok(Arc::clone(owned.encoded.get_or_insert_with(|| owner.encode().parts().concat().into())))
        });
        drop(entry);
        if reserved.is_err() {
            // The entry may be new and empty.
            self.change_or_remove(ScopeId::of_owner(owner), |_| {});
        }
        reserved.map(Some)
    }

    /// Returns the sessions of an owner; none for [`Owner::Anonymous`].
    pub(super) fn sessions_of(&self, owner: ScopeId) -> Vec<Arc<Session>> {
        self.owners.get(&owner).map(|entry| entry.sessions()).unwrap_or_default()
    }

    /// Removes a reservation of an owner.
    fn cancel_of_owner(&self, encoded_owner: Option<&[u8]>) {
        if let Some(encoded) = encoded_owner {
            let owner = ScopeId::of_encoded_owner(Some(encoded));
            self.change_or_remove(owner, |owned| owned.reserved = owned.reserved.saturating_sub(1));
        }
    }

    /// Changes the entry of an owner, and removes it if it is empty afterwards.
    fn change_or_remove(&self, owner: ScopeId, change: impl FnOnce(&mut OwnerSessions)) {
        self.owners.remove_if_mut(&owner, |_, entry| {
            entry.change(change);
            matches!(entry, OwnerEntry::Many(owned) if owned.reserved == 0 && owned.sessions.len() == 0)
        });
    }

    /// Returns the number of sessions and reservations, and that of owners with an entry.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.total.load(Ordering::Acquire), self.owners.len())
    }
}

impl OwnerSessions {
    /// Adds a reservation, if a session can be evicted for each reservation that would exceed the limit.
    /// There can be more sessions than `max` if other processes have some: each reservation then requires one.
    fn reserve(&mut self, max: usize) -> Result<(), ReservationError> {
        let exceeding = (self.reserved + self.sessions.len() + 1).saturating_sub(max).min(self.reserved + 1);
        if !self.sessions.has_unused(exceeding) {
            return Err(ReservationError::OwnerLimit);
        }
        self.reserved += 1;
        Ok(())
    }
}

impl OwnerEntry {
    /// Returns the sessions in any order.
    fn sessions(&self) -> Vec<Arc<Session>> {
        match self {
            Self::Single(session) => vec![Arc::clone(session)],
            Self::Many(owned) => owned.sessions.all(),
        }
    }

    /// Changes the sessions and reservations, in the form for many, and returns to the form for one if it suffices.
    fn change<T>(&mut self, change: impl FnOnce(&mut OwnerSessions) -> T) -> T {
        let mut owned = match mem::take(self) {
            Self::Many(owned) => owned,
            Self::Single(session) => {
                let mut owned = Box::<OwnerSessions>::default();
                owned.encoded = session.encoded_owner().cloned();
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
