//! The later identifiers of a session, after rotation.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{RandomPart, TaggedId};

/// The minimum time between two rotations of a session, in milliseconds.
const MIN_INTERVAL: u64 = Duration::from_secs(60).as_millis() as u64;
/// The time for which an identifier resolves after the first use of the next one, in milliseconds.
const GRACE_PERIOD: u64 = Duration::from_secs(5 * 60).as_millis() as u64;

/// The identifiers of a session after the first. The first identifier has number 0, the next one number 1. Times are in
/// milliseconds.
///
/// An identifier is rotated at most once, and only after it has been used. Retired identifiers are removed when the next
/// one is added, so there are never more than a few.
pub(crate) struct Rotations(Mutex<Vec<Rotation>>);

/// An identifier after the first.
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    pub(crate) id: TaggedId,
    pub(crate) number: u32,
    /// The hash of the scopes for which it was created.
    pub(crate) scopes_hash: u64,
    created: u64,
    first_used: Option<u64>,
}

impl Rotation {
    pub(crate) fn new(id: TaggedId, number: u32, scopes_hash: u64, now: u64) -> Self {
        Self { id, number, scopes_hash, created: now, first_used: None }
    }

    /// Returns whether the session may get the next identifier.
    pub(crate) fn may_be_rotated(&self, now: u64) -> bool {
        self.first_used.is_some() && now.saturating_sub(self.created) >= MIN_INTERVAL
    }

    fn retires_predecessor(&self, now: u64) -> bool {
        self.first_used.is_some_and(|used| now.saturating_sub(used) >= GRACE_PERIOD)
    }
}

impl Rotations {
    pub(crate) fn empty() -> Self {
        Self(Mutex::default())
    }

    /// Returns the newest identifier.
    pub(crate) fn newest(&self) -> Option<Rotation> {
        self.lock().last().copied()
    }

    /// Marks the identifier with this number as used. Returns whether it still resolves.
    pub(crate) fn mark_used(&self, number: u32, now: u64) -> bool {
        let mut list = self.lock();
        if is_retired(&list, number, now) {
            return false;
        }
        if let Some(used) = list.iter_mut().find(|rotation| rotation.number == number) {
            used.first_used.get_or_insert(now);
        }
        true
    }

    /// Returns whether the identifier with this number no longer resolves.
    pub(crate) fn is_retired(&self, number: u32, now: u64) -> bool {
        is_retired(&self.lock(), number, now)
    }

    /// Adds an identifier if its number is the next one and `may_be_added` returns true. Returns the retired identifiers that
    /// were removed.
    ///
    /// # Errors
    /// Returns the identifier if it was not added.
    pub(crate) fn add(
        &self,
        rotation: Rotation,
        now: u64,
        may_be_added: impl FnOnce() -> bool,
    ) -> Result<Vec<RandomPart>, RandomPart> {
        let mut list = self.lock();
        let newest = list.last().map_or(0, |newest| newest.number);
        if newest.checked_add(1) != Some(rotation.number) || !may_be_added() {
            return Err(rotation.id.random());
        }
        // Older identifiers retire first.
        let retired = list.iter().take_while(|old| is_retired(&list, old.number, now)).count();
        let removed = list.drain(..retired).map(|old| old.id.random()).collect();
        list.push(rotation);
        Ok(removed)
    }

    /// Removes all identifiers.
    pub(crate) fn take(&self) -> Vec<RandomPart> {
        std::mem::take(&mut *self.lock()).iter().map(|rotation| rotation.id.random()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Rotation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether an identifier is retired. If it is not the newest and the next one was removed, it retired long ago.
fn is_retired(list: &[Rotation], number: u32, now: u64) -> bool {
    if list.last().is_none_or(|newest| newest.number == number) {
        return false;
    }
    let next = list.iter().find(|rotation| Some(rotation.number) == number.checked_add(1));
    next.is_none_or(|next| next.retires_predecessor(now))
}
