//! The identifiers of one session.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::RandomPart;

/// The minimum time between two new identifiers of a session, in milliseconds.
const MIN_INTERVAL: u64 = Duration::from_secs(60).as_millis() as u64;
/// The time for which an identifier resolves after the first use of a later one, in milliseconds.
const GRACE_PERIOD: u64 = Duration::from_secs(5 * 60).as_millis() as u64;
/// The most identifiers of a session that are remembered. An older one is opened again when it is used.
const MAX_REMEMBERED: usize = 16;
/// The value of [`Generation::first_used`] before the first use.
const UNUSED: u64 = u64::MAX;

/// One identifier of a session, without its text, which is sealed again when it is needed. Times are in milliseconds of the
/// store's monotonic clock.
pub(crate) struct Generation {
    pub(crate) random: RandomPart,
    /// The keyed hash of the text.
    pub(crate) text_hash: u64,
    /// The first identifier has number 0. Processes that get different scopes at once can make several identifiers with one
    /// number.
    pub(crate) number: u32,
    /// The hash of the scopes for which it was made.
    pub(crate) fingerprint: u64,
    /// When this process made it or first saw it.
    since: u64,
    first_used: AtomicU64,
}

impl Generation {
    pub(crate) fn new(random: RandomPart, text_hash: u64, number: u32, fingerprint: u64, now: u64) -> Self {
        Self { random, text_hash, number, fingerprint, since: now, first_used: AtomicU64::new(UNUSED) }
    }

    pub(crate) fn mark_used(&self, now: u64) {
        if self.first_used.load(Ordering::Relaxed) != UNUSED {
            return;
        }
        let _ = self.first_used.compare_exchange(UNUSED, now, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Returns whether a new identifier may follow this one. The first identifier needs no waiting time.
    pub(crate) fn may_be_followed(&self, now: u64) -> bool {
        let used = self.first_used.load(Ordering::Acquire) != UNUSED;
        self.number == 0 || (used && now.saturating_sub(self.since) >= MIN_INTERVAL)
    }

    /// Returns whether the identifiers with smaller numbers no longer resolve.
    pub(crate) fn retires_earlier(&self, now: u64) -> bool {
        let first_used = self.first_used.load(Ordering::Acquire);
        first_used != UNUSED && now.saturating_sub(first_used) >= GRACE_PERIOD
    }
}

/// The identifiers of a session beside the one with which this process opened it.
#[derive(Default)]
pub(crate) struct Generations(Mutex<Vec<Arc<Generation>>>);

/// The result of [`Generations::add`].
pub(crate) struct AddedGeneration {
    pub(crate) generation: Arc<Generation>,
    /// The identifier that had to make room.
    pub(crate) removed: Option<RandomPart>,
}

impl Generations {
    /// Returns the identifier with the highest number.
    pub(crate) fn newest(&self) -> Option<Arc<Generation>> {
        // Of several with one number, the first one that this process knew.
        self.lock().iter().rev().max_by_key(|generation| generation.number).cloned()
    }

    /// Returns the lowest number that resolves, as far as uses in this process decide it.
    pub(crate) fn lowest_valid(&self, now: u64) -> u32 {
        let list = self.lock();
        list.iter().filter(|later| later.retires_earlier(now)).map(|later| later.number).max().unwrap_or(0)
    }

    /// Adds an identifier if `may_be_added` returns true for the highest number in the list, unless the list has it. Returns
    /// the identifier in the list.
    pub(crate) fn add(
        &self,
        generation: Generation,
        may_be_added: impl FnOnce(Option<u32>) -> bool,
    ) -> Option<AddedGeneration> {
        let mut list = self.lock();
        if let Some(known) = list.iter().find(|known| known.random == generation.random) {
            return Some(AddedGeneration { generation: Arc::clone(known), removed: None });
        }
        if !may_be_added(list.iter().map(|known| known.number).max()) {
            return None;
        }
        let removed = (list.len() >= MAX_REMEMBERED).then(|| list.remove(0).random);
        let generation = Arc::new(generation);
        list.push(Arc::clone(&generation));
        Some(AddedGeneration { generation, removed })
    }

    /// Removes the identifiers with numbers below `lowest`.
    pub(crate) fn remove_below(&self, lowest: u32) -> Vec<RandomPart> {
        let mut list = self.lock();
        let removed = list.iter().filter(|old| old.number < lowest).map(|old| old.random).collect();
        list.retain(|generation| generation.number >= lowest);
        removed
    }

    /// Removes all identifiers.
    pub(crate) fn take(&self) -> Vec<RandomPart> {
        std::mem::take(&mut *self.lock()).iter().map(|generation| generation.random).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Generation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
