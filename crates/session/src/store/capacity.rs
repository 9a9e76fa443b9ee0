//! [`Capacity`]: the limits on sessions, in total and per owner, and the sessions of each owner.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use dashmap::{DashMap, Entry};

use super::last_use_heap::{Evicted, LastUseHeap};
use crate::{error::ReservationError, live_session::Session, owner::Owner, scope::ScopeId};

/// Counts sessions and reservations, in total and per owner, and selects the session that a new one
/// evicts.
///
/// A session is first reserved and then recorded. An owner never has more than `max_per_owner`
/// sessions, nor more than `max_per_owner` reservations. A reservation that would exceed the limit
/// requires a session of the owner that is not in use, and each such reservation requires another
/// one. The session to evict is selected when the new one is recorded.
///
/// A subject has at most `max_per_subject` sessions and reservations with all its clients. A
/// reservation that requires the eviction of a session of the same owner does not count, because
/// the number stays the same.
///
/// An owner without sessions and reservations has no entry. [`Owner::Anonymous`] never has an
/// entry, and no limit per owner.
pub(super) struct Capacity {
    max_total: usize,
    max_per_owner: usize,
    max_per_subject: usize,
    total: AtomicUsize,
    owners: DashMap<ScopeId, OwnerEntry>,
    /// The numbers of sessions and counted reservations of subjects that have any.
    subjects: DashMap<SubjectKey, u32>,
}

/// The first 12 bytes of a subject's id. With the number, an entry takes 16 bytes.
type SubjectKey = [u8; 12];

/// The sessions that only other processes have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Elsewhere {
    pub(super) of_owner: usize,
    /// Of the owner's subject, with all its clients.
    pub(super) of_subject: usize,
}

/// A reservation.
pub(super) struct Reserved {
    /// The encoding of the owner, which all of its sessions share; `None` for [`Owner::Anonymous`].
    pub(super) encoded_owner: Option<Arc<[u8]>>,
    /// Whether the reservation counts for the owner's subject.
    pub(super) counts_for_subject: bool,
}

/// A reservation of an owner.
struct ReservedOfOwner {
    encoded_owner: Option<Arc<[u8]>>,
    /// Whether a session of the owner must end for the new one.
    replaces: bool,
}

/// The sessions and reservations of one owner. Most owners have a single session, which needs no
/// allocation.
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
    /// Returns the limits, with nothing reserved. Those per owner and per subject also count
    /// sessions of other processes; see [`reserve`](Self::reserve).
    pub(super) fn new(max_total: usize, max_per_owner: usize, max_per_subject: usize) -> Self {
        let total = AtomicUsize::new(0);
        Self {
            max_total,
            max_per_owner,
            max_per_subject,
            total,
            owners: DashMap::new(),
            subjects: DashMap::new(),
        }
    }

    /// Reserves a session for `owner`. Fails at the limit of all sessions, at that of the owner's
    /// subject, and at the owner's limit if no further session of the owner can be evicted.
    pub(super) fn reserve(
        &self,
        owner: Owner<'_>,
        elsewhere: Elsewhere,
    ) -> Result<Reserved, ReservationError> {
        // The owner's limits come first, so that an owner at its limits does not take capacity from
        // others.
        let subject = owner.subject_scope();
        let ReservedOfOwner {
            encoded_owner,
            replaces,
        } = self.reserve_of_owner(owner, self.limit_here(elsewhere.of_owner))?;
        let counts_for_subject = subject.is_some() && !replaces;
        if let Some(subject) = subject.filter(|_| counts_for_subject)
            && !self.add_of_subject(
                subject,
                self.max_per_subject.saturating_sub(elsewhere.of_subject),
            )
        {
            self.cancel_of_owner(encoded_owner.as_deref());
            return Err(ReservationError::SubjectLimit);
        }
        let reserved = self
            .total
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
                (taken < self.max_total).then_some(taken + 1)
            });
        if reserved.is_err() {
            self.cancel_of_subject(subject.filter(|_| counts_for_subject));
            self.cancel_of_owner(encoded_owner.as_deref());
            return Err(ReservationError::TotalLimit);
        }
        Ok(Reserved {
            encoded_owner,
            counts_for_subject,
        })
    }

    /// Releases a reservation whose session was not recorded.
    pub(super) fn cancel(&self, encoded_owner: Option<&[u8]>, counts_for_subject: bool) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        let subject = encoded_owner
            .filter(|_| counts_for_subject)
            .map(Owner::decode)
            .and_then(Owner::subject_scope);
        self.cancel_of_subject(subject);
        self.cancel_of_owner(encoded_owner);
    }

    /// Replaces a reservation by its session, which must be in use. At the owner's limit, ends the
    /// owner's least recently used session that is not in use, and above the limit one more, and
    /// returns them. They count in the total until [`remove`](Self::remove). Returns
    /// [`ReservationError::OwnerLimit`] if all sessions of the owner have been taken into use since
    /// the reservation. The reservation continues.
    pub(super) fn record(
        &self,
        session: &Arc<Session>,
        elsewhere: usize,
        counts_for_subject: bool,
    ) -> Result<Vec<Evicted>, ReservationError> {
        let mut evicted = Vec::new();
        if session.encoded_owner().is_none() {
            return Ok(evicted);
        }
        let limit = self.limit_here(elsewhere);
        let mut entry = self.owners.entry(session.owner_id()).or_default();
        entry.change(|owned| {
            if owned.sessions.len() >= limit {
                evicted.push(owned.sessions.evict().ok_or(ReservationError::OwnerLimit)?);
                // Processes that do not know of each other's latest sessions exceed the limit. One
                // more ends for each new one.
                if owned.sessions.len() >= limit {
                    evicted.extend(owned.sessions.evict());
                }
            }
            owned.reserved = owned.reserved.saturating_sub(1);
            owned.sessions.insert(Arc::clone(session));
            Ok::<_, ReservationError>(())
        })?;
        drop(entry);
        if let Some(subject) = session
            .owner()
            .subject_scope()
            .filter(|_| !counts_for_subject)
        {
            // The session that it replaces counts until it is removed.
            self.add_of_subject(subject, usize::MAX);
        }
        Ok(evicted)
    }

    /// Releases the capacity of an ended session.
    pub(super) fn remove(&self, session: &Session) {
        self.total.fetch_sub(1, Ordering::AcqRel);
        if session.encoded_owner().is_some() {
            self.cancel_of_subject(session.owner().subject_scope());
            self.change_or_remove(session.owner_id(), |owned| owned.sessions.remove(session));
        }
    }

    /// Returns the owner's limit in this process: what other processes leave of it, but at least
    /// one.
    fn limit_here(&self, elsewhere: usize) -> usize {
        self.max_per_owner
            .saturating_sub(elsewhere)
            .max(1)
            .min(self.max_per_owner)
    }

    /// Adds a reservation of an owner whose limit in this process is `limit`.
    fn reserve_of_owner(
        &self,
        owner: Owner<'_>,
        limit: usize,
    ) -> Result<ReservedOfOwner, ReservationError> {
        if owner == Owner::Anonymous {
            return Ok(ReservedOfOwner {
                encoded_owner: None,
                replaces: false,
            });
        }
        let mut entry = self.owners.entry(ScopeId::of_owner(owner)).or_default();
        let reserved = entry.change(|owned| {
            let replaces = owned.reserve(limit)?;
            let encoded = owned
                .encoded
                .get_or_insert_with(|| owner.encode().parts().concat().into());
            Ok(ReservedOfOwner {
                encoded_owner: Some(Arc::clone(encoded)),
                replaces,
            })
        });
        drop(entry);
        if reserved.is_err() {
            // The entry may be new and empty.
            self.change_or_remove(ScopeId::of_owner(owner), |_| {});
        }
        reserved
    }

    /// Adds a session or reservation of a subject. Returns whether there were fewer than `limit`.
    fn add_of_subject(&self, subject: ScopeId, limit: usize) -> bool {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        match self.subjects.entry(subject_key(subject)) {
            Entry::Occupied(mut count) => {
                let is_added = *count.get() < limit;
                *count.get_mut() += u32::from(is_added);
                is_added
            }
            Entry::Vacant(entry) => {
                let is_added = limit > 0;
                if is_added {
                    entry.insert(1);
                }
                is_added
            }
        }
    }

    /// Removes a session or reservation of a subject.
    fn cancel_of_subject(&self, subject: Option<ScopeId>) {
        if let Some(subject) = subject {
            self.subjects
                .remove_if_mut(&subject_key(subject), |_, count| {
                    *count = count.saturating_sub(1);
                    *count == 0
                });
        }
    }

    /// Returns the sessions of an owner; none for [`Owner::Anonymous`].
    pub(super) fn sessions_of(&self, owner: ScopeId) -> Vec<Arc<Session>> {
        self.owners
            .get(&owner)
            .map(|entry| entry.sessions())
            .unwrap_or_default()
    }

    /// Removes a reservation of an owner.
    fn cancel_of_owner(&self, encoded_owner: Option<&[u8]>) {
        if let Some(encoded) = encoded_owner {
            let owner = ScopeId::of_encoded_owner(Some(encoded));
            self.change_or_remove(owner, |owned| {
                owned.reserved = owned.reserved.saturating_sub(1)
            });
        }
    }

    /// Changes the entry of an owner, and removes it if it is empty afterwards.
    fn change_or_remove(&self, owner: ScopeId, change: impl FnOnce(&mut OwnerSessions)) {
        self.owners.remove_if_mut(&owner, |_, entry| {
            entry.change(change);
            matches!(entry, OwnerEntry::Many(owned) if owned.reserved == 0 && owned.sessions.len() == 0)
        });
    }

    /// Returns the number of sessions and counted reservations of each subject.
    #[cfg(test)]
    pub(super) fn subject_counts(&self) -> Vec<usize> {
        self.subjects.iter().map(|count| *count as usize).collect()
    }

    /// Returns the number of sessions and reservations, and that of owners with an entry.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.total.load(Ordering::Acquire), self.owners.len())
    }
}

fn subject_key(subject: ScopeId) -> SubjectKey {
    *subject.0.first_chunk().unwrap_or(&[0; 12])
}

impl OwnerSessions {
    /// Adds a reservation, if a session can be evicted for each reservation that would exceed the
    /// limit. There can be more sessions than `max` if other processes have some: each reservation
    /// then requires one. Returns whether it does.
    fn reserve(&mut self, max: usize) -> Result<bool, ReservationError> {
        let exceeding = (self.reserved + self.sessions.len() + 1)
            .saturating_sub(max)
            .min(self.reserved + 1);
        if !self.sessions.has_unused(exceeding) {
            return Err(ReservationError::OwnerLimit);
        }
        self.reserved += 1;
        Ok(exceeding > 0)
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

    /// Changes the sessions and reservations, in the form for many, and returns to the form for one
    /// if it suffices.
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
        let single = if owned.reserved == 0 {
            owned.sessions.take_single()
        } else {
            None
        };
        *self = single.map_or(Self::Many(owned), Self::Single);
        result
    }
}

impl Default for OwnerEntry {
    fn default() -> Self {
        Self::Many(Box::default())
    }
}
