//! The identifiers of a session: the first one, those that follow it, and those that have ended.
//!
//! The *first* one is that with which this process opened or adopted the session; all *others* are
//! added to it later. Each has the number of its generation. Responses carry the *newest*, which
//! has the highest number. When a generation has been in use for its *grace period*
//! ([`Generation::retires_earlier`]), all clients are expected to have it, and earlier ones end:
//! the *lowest generation* rises to it, here and then in other processes, and identifiers with
//! lower numbers no longer resolve. It never falls.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{Session, millis};
use crate::identifier::{
    AssociatedData, Generation, Generations, Identifier, RandomPart, Record, seal, successor_random,
};

/// The result of [`Session::end_generations_below`].
pub(crate) struct EndedGenerations {
    /// Whether some of the generations were still valid.
    pub(crate) has_ended_some: bool,
    /// The random parts of the identifiers that were removed. Those of the first one are not among
    /// them: it is kept until the session ends.
    pub(crate) removed: Vec<RandomPart>,
}

impl Session {
    /// Returns the newest identifier of the session. Each call seals it again.
    pub fn identifier(&self) -> Identifier {
        self.newest_generation()
            .map_or_else(|| self.sealed(&self.first), |newest| self.sealed(&newest))
    }

    /// Returns the newest identifier, if it is not [`first`](Self::first).
    pub(crate) fn newest_generation(&self) -> Option<Arc<Generation>> {
        self.others
            .get()?
            .newest()
            .filter(|newest| newest.number > self.first.number)
    }

    /// Returns the identifiers other than [`first`](Self::first), to add one.
    pub(crate) fn others(&self) -> &Generations {
        self.others.get_or_init(Box::default)
    }

    /// Removes the identifiers other than [`first`](Self::first) and returns their random parts.
    pub(crate) fn take_others(&self) -> Vec<RandomPart> {
        self.others
            .get()
            .map(|others| others.take())
            .unwrap_or_default()
    }

    /// Returns the identifier that follows `current`, for a token with other scopes. All processes
    /// make the same one.
    pub(crate) fn successor(
        &self,
        current: &Generation,
        fingerprint: u64,
        now: Duration,
    ) -> Option<Generation> {
        let record = self.record(current.number.checked_add(1)?, fingerprint);
        let bound_to = AssociatedData::new(self.resource(), self.owner());
        let random = successor_random(&self.key, &bound_to, &current.random, &record);
        let identifier = seal(&self.key, &bound_to, &random, &record)?;
        let text_hash = self.key.text_hash(identifier.as_bytes());
        Some(Generation::new(
            random,
            text_hash,
            record.generation,
            fingerprint,
            millis(now),
        ))
    }

    /// Returns the text of one of the session's identifiers. If it cannot be sealed, it is empty,
    /// which no process knows: the client has to open another session.
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

    /// Ends the generations below `lowest`, in this process. The caller removes their identifiers
    /// from the table.
    pub(crate) fn end_generations_below(&self, lowest: u32) -> EndedGenerations {
        let before = self.lowest_generation.fetch_max(lowest, Ordering::AcqRel);
        let removed = self
            .others
            .get()
            .map(|others| others.remove_below(lowest))
            .unwrap_or_default();
        EndedGenerations {
            has_ended_some: before < lowest,
            removed,
        }
    }

    /// Returns the generation to which [`lowest_generation`](Self::lowest_generation) is due to
    /// rise, because its grace period is over according to the uses in this process. Returns `None`
    /// if nothing is due. The caller then ends the earlier ones.
    pub(crate) fn due_lowest_generation(&self, now: Duration) -> Option<u32> {
        let others = self.others.get();
        // No generation is earlier than 0. Most sessions have only that one, and each request calls
        // this.
        if others.is_none() && self.first.number == 0 {
            return None;
        }
        let now = millis(now);
        let by_first = if self.first.retires_earlier(now) {
            self.first.number
        } else {
            0
        };
        let lowest = others
            .map_or(0, |others| others.lowest_valid(now))
            .max(by_first);
        (lowest > self.lowest_generation()).then_some(lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live_session::lifecycle::tests::opened_at;

    const GRACE_PERIOD: Duration = Duration::from_secs(5 * 60);
    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Returns a session with the generations 0 and those with these numbers, in this order. Each
    /// has its number as its random part.
    fn session_with(numbers: impl IntoIterator<Item = u8>) -> Session {
        let session = opened_at(Duration::ZERO);
        for number in numbers {
            let generation = Generation::new([number; 16], 0, number.into(), 0, 0);
            assert!(session.others().add(generation, |_| true).is_some());
        }
        session
    }

    /// E8: the newest identifier is the one with the highest number, and not the one that was added
    /// last.
    #[test]
    fn the_newest_has_the_highest_number() {
        let newest = |numbers: &[u8]| {
            session_with(numbers.iter().copied())
                .newest_generation()
                .map(|generation| generation.number)
        };
        assert_eq!(newest(&[]), None, "the first is the newest");
        assert_eq!(newest(&[1]), Some(1));
        assert_eq!(newest(&[2, 1]), Some(2));
        assert_ne!(&*opened_at(Duration::ZERO).identifier(), "");
        assert_ne!(
            *opened_at(Duration::ZERO).identifier(),
            *session_with([1]).identifier()
        );
    }

    /// E8: earlier generations are due to end when a later one has been in use for the grace
    /// period.
    #[test]
    fn earlier_generations_end_after_the_grace_period() {
        let session = session_with([1, 2]);
        assert_eq!(
            session.due_lowest_generation(2 * GRACE_PERIOD),
            None,
            "only the first was used"
        );
        let used = Duration::from_secs(1);
        session.newest_generation().unwrap().mark_used(millis(used));
        assert_eq!(
            session.due_lowest_generation(used + GRACE_PERIOD - MILLISECOND),
            None
        );
        assert_eq!(session.due_lowest_generation(used + GRACE_PERIOD), Some(2));
        session.end_generations_below(2);
        assert_eq!(session.due_lowest_generation(used + GRACE_PERIOD), None);
        assert_eq!(session.lowest_generation(), 2);
    }

    /// E8: the lowest generation never falls, and each identifier is removed once.
    #[test]
    fn generations_end_once() {
        let session = session_with([1, 2, 3]);
        let end_below = |lowest| {
            let EndedGenerations {
                has_ended_some,
                removed,
            } = session.end_generations_below(lowest);
            (has_ended_some, removed, session.lowest_generation())
        };
        assert_eq!(end_below(3), (true, vec![[1; 16], [2; 16]], 3));
        assert_eq!(end_below(3), (false, Vec::new(), 3));
        assert_eq!(end_below(1), (false, Vec::new(), 3));
        assert_eq!(session.take_others(), [[3; 16]]);
    }
}
