//! The identifiers of one session, each with its generation number and its uses.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::RandomPart;

/// The minimum time between two new identifiers of a session, in milliseconds.
const MIN_INTERVAL: u64 = Duration::from_secs(60).as_millis() as u64;
/// The time for which an identifier resolves after the first use of a later one, in milliseconds.
const GRACE_PERIOD: u64 = Duration::from_secs(5 * 60).as_millis() as u64;
/// The maximum number of identifiers in memory, for one session. An older one is opened again when
/// it is used.
const MAX_REMEMBERED: usize = 16;
/// The value of [`Generation::first_used`] before the first use.
const UNUSED: u64 = u64::MAX;

/// One identifier of a session. The text is not kept: it is sealed again when it is needed. Times
/// are in milliseconds of the store's monotonic clock.
pub(crate) struct Generation {
    pub(crate) random: RandomPart,
    /// The keyed hash of the text.
    pub(crate) text_hash: u64,
    /// The number of the generation, which is 0 for the first identifier of the session. Several
    /// identifiers have the same number if processes receive tokens with different scopes at the
    /// same time.
    pub(crate) number: u32,
    /// The keyed hash of the scopes for which the identifier was made.
    pub(crate) fingerprint: u64,
    /// When this process made the identifier or first opened it.
    since: u64,
    first_used: AtomicU64,
}

impl Generation {
    /// Returns an identifier that this process makes or opens at the time `now`, in milliseconds,
    /// and that is not used yet.
    pub(crate) fn new(
        random: RandomPart,
        text_hash: u64,
        number: u32,
        fingerprint: u64,
        now: u64,
    ) -> Self {
        Self {
            random,
            text_hash,
            number,
            fingerprint,
            since: now,
            first_used: AtomicU64::new(UNUSED),
        }
    }

    /// Records the first use. Later calls do nothing.
    pub(crate) fn mark_used(&self, now: u64) {
        if self.first_used.load(Ordering::Relaxed) != UNUSED {
            return;
        }
        let _ = self
            .first_used
            .compare_exchange(UNUSED, now, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Returns whether a new identifier may follow this one: always after the first; otherwise only
    /// after a use, and after the minimum time.
    pub(crate) fn may_be_followed(&self, now: u64) -> bool {
        let used = self.first_used.load(Ordering::Acquire) != UNUSED;
        self.number == 0 || (used && now.saturating_sub(self.since) >= MIN_INTERVAL)
    }

    /// Returns whether the grace period of earlier generations is over.
    pub(crate) fn retires_earlier(&self, now: u64) -> bool {
        let first_used = self.first_used.load(Ordering::Acquire);
        first_used != UNUSED && now.saturating_sub(first_used) >= GRACE_PERIOD
    }
}

/// The identifiers of a session, except the one with which this process opened or adopted it.
#[derive(Default)]
pub(crate) struct Generations(Mutex<Vec<Arc<Generation>>>);

/// The result of [`Generations::add`].
pub(crate) struct AddedGeneration {
    pub(crate) generation: Arc<Generation>,
    /// The random part of the identifier that this one has replaced in memory.
    pub(crate) removed: Option<RandomPart>,
}

impl Generations {
    /// Returns the identifier with the highest number.
    pub(crate) fn newest(&self) -> Option<Arc<Generation>> {
        // Of several with the same number, the one that this process knew first.
        self.0
            .lock()
            .iter()
            .rev()
            .max_by_key(|generation| generation.number)
            .cloned()
    }

    /// Returns the lowest generation that still resolves, according to the uses in this process.
    pub(crate) fn lowest_valid(&self, now: u64) -> u32 {
        let list = self.0.lock();
        list.iter()
            .filter(|later| later.retires_earlier(now))
            .map(|later| later.number)
            .max()
            .unwrap_or(0)
    }

    /// Returns the identifier with the same random part, or adds this one if `may_be_added` returns
    /// true for the highest number in the list.
    pub(crate) fn add(
        &self,
        generation: Generation,
        may_be_added: impl FnOnce(Option<u32>) -> bool,
    ) -> Option<AddedGeneration> {
        let mut list = self.0.lock();
        if let Some(known) = list.iter().find(|known| known.random == generation.random) {
            return Some(AddedGeneration {
                generation: Arc::clone(known),
                removed: None,
            });
        }
        if !may_be_added(list.iter().map(|known| known.number).max()) {
            return None;
        }
        let removed = (list.len() >= MAX_REMEMBERED).then(|| list.remove(0).random);
        let generation = Arc::new(generation);
        list.push(Arc::clone(&generation));
        Some(AddedGeneration {
            generation,
            removed,
        })
    }

    /// Removes the generations below `lowest`, and returns the random parts of their identifiers.
    pub(crate) fn remove_below(&self, lowest: u32) -> Vec<RandomPart> {
        let mut list = self.0.lock();
        let removed = list
            .iter()
            .filter(|old| old.number < lowest)
            .map(|old| old.random)
            .collect();
        list.retain(|generation| generation.number >= lowest);
        removed
    }

    /// Removes all identifiers, and returns their random parts.
    pub(crate) fn take(&self) -> Vec<RandomPart> {
        std::mem::take(&mut *self.0.lock())
            .iter()
            .map(|generation| generation.random)
            .collect()
    }
}
