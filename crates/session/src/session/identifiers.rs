//! The identifiers of a session: the newest one, its successor, and those that have ended.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{Session, millis};
use crate::identifier::{
    AssociatedData, Generation, Generations, Identifier, RandomPart, Record, seal, successor_random,
};

impl Session {
    /// Returns the newest identifier of the session. Each call seals it again.
    pub fn identifier(&self) -> Identifier {
        self.newest_generation().map_or_else(|| self.sealed(&self.first), |newest| self.sealed(&newest))
    }

    /// Returns the newest identifier, if it is not [`first`](Self::first).
    pub(crate) fn newest_generation(&self) -> Option<Arc<Generation>> {
        self.others.get()?.newest().filter(|newest| newest.number > self.first.number)
    }

    /// Returns the identifiers other than [`first`](Self::first), to add one.
    pub(crate) fn others(&self) -> &Generations {
        self.others.get_or_init(Box::default)
    }

    /// Removes the identifiers other than [`first`](Self::first) and returns their random parts.
    pub(crate) fn take_others(&self) -> Vec<RandomPart> {
        self.others.get().map(|others| others.take()).unwrap_or_default()
    }

    /// Returns the identifier that follows `current`, for a token with other scopes. All processes make the same one.
    pub(crate) fn successor(&self, current: &Generation, fingerprint: u64, now: Duration) -> Option<Generation> {
        let record = self.record(current.number.checked_add(1)?, fingerprint);
        let bound_to = AssociatedData::new(self.resource(), self.owner());
        let random = successor_random(&self.key, &bound_to, &current.random, &record);
        let identifier = seal(&self.key, &bound_to, &random, &record)?;
        let text_hash = self.key.text_hash(identifier.as_bytes());
        Some(Generation::new(random, text_hash, record.generation, fingerprint, millis(now)))
    }

    /// Returns the text of one of the session's identifiers.
    fn sealed(&self, generation: &Generation) -> Identifier {
        let record = self.record(generation.number, generation.fingerprint);
        let bound_to = AssociatedData::new(self.resource(), self.owner());
        // The record fits: it was sealed before.
        seal(&self.key, &bound_to, &generation.random, &record).unwrap_or_else(Identifier::empty)
    }

    fn record(&self, generation: u32, fingerprint: u64) -> Record {
        Record {
            session: self.id,
            generation,
            created: self.created,
            upstream: self.key.upstream_hash(self.target.upstream()),
            fingerprint,
            version: self.version,
            backend_id: self.is_sealed.then(|| self.backend_id.clone()),
        }
    }

    /// Returns the lowest generation whose identifiers resolve.
    pub(crate) fn lowest_generation(&self) -> u32 {
        self.lowest_generation.load(Ordering::Acquire)
    }

    /// Ends the generations below `lowest`. Returns whether some of them were still valid, and the random parts of the removed
    /// identifiers.
    pub(crate) fn end_generations_below(&self, lowest: u32) -> (bool, Vec<RandomPart>) {
        let before = self.lowest_generation.fetch_max(lowest, Ordering::AcqRel);
        let removed = self.others.get().map(|others| others.remove_below(lowest)).unwrap_or_default();
        (before < lowest, removed)
    }

    /// Returns the lowest generation that still resolves according to the uses in this process, if it is higher than
    /// [`lowest_generation`](Self::lowest_generation). The caller then ends the earlier ones.
    pub(crate) fn retirement(&self, now: Duration) -> Option<u32> {
        let others = self.others.get();
        if others.is_none() && self.first.number == 0 {
            return None;
        }
        let now = millis(now);
        let by_first = if self.first.retires_earlier(now) { self.first.number } else { 0 };
        let lowest = others.map_or(0, |others| others.lowest_valid(now)).max(by_first);
        (lowest > self.lowest_generation()).then_some(lowest)
    }
}
