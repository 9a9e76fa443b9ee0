//! Rotation: new identifiers of a session, and the end of earlier ones.

use std::{sync::Arc, time::Duration};

use super::{Inner, SWEEP_BATCH, SessionStore, resolving::Found};
use crate::{
    identifier::{Generation, Identifier},
    journal::EndExtent,
    live_session::{EndedGenerations, Session, millis},
};

impl SessionStore {
    /// See [`InUse::rotated_identifier`](super::InUse::rotated_identifier). `current` is the
    /// identifier with which the use began.
    pub(super) fn rotated_identifier(
        &self,
        session: &Arc<Session>,
        current: &Generation,
        fingerprint: u64,
    ) -> Option<Identifier> {
        let newest = session
            .newest_generation()
            .map_or(session.first().number, |newest| newest.number);
        if current.number >= newest {
            if fingerprint == current.fingerprint {
                return None;
            }
            let now = self.0.clock.monotonic();
            if !current.may_be_followed(millis(now)) {
                return None;
            }
            self.0.rotate(session, current, fingerprint, now)?;
        }
        (!session.has_ended()).then(|| session.identifier())
    }
}

impl Inner {
    /// Adds an identifier to a session, unless another call has just done so or the session has
    /// ended.
    fn rotate(
        &self,
        session: &Arc<Session>,
        current: &Generation,
        fingerprint: u64,
        now: Duration,
    ) -> Option<()> {
        let next = session.successor(current, fingerprint, now)?;
        let number = next.number;
        let is_next = |newest: Option<u32>| {
            newest.is_none_or(|newest| newest < number) && !session.has_ended()
        };
        self.add_generation(session, next, is_next);
        Some(())
    }

    /// Adds an identifier to a session if `may_be_added` returns true for the highest generation of
    /// the later identifiers. Returns the added identifier, or the equal one that the session had.
    pub(super) fn add_generation(
        &self,
        session: &Arc<Session>,
        generation: Generation,
        may_be_added: impl FnOnce(Option<u32>) -> bool,
    ) -> Option<Arc<Generation>> {
        // The session's lock is released before the table's is taken.
        let added = session.others().add(generation, may_be_added)?;
        if let Some(removed) = added.removed {
            self.rotated.remove(&removed);
        }
        let random = added.generation.random;
        let found = Found {
            session: Arc::clone(session),
            generation: Some(Arc::clone(&added.generation)),
        };
        self.rotated.insert(random, found);
        if session.has_ended() {
            self.rotated.remove(&random);
        }
        Some(added.generation)
    }

    /// Ends the generations below `lowest`, here and elsewhere.
    pub(super) fn end_generations(&self, session: &Session, lowest: u32) {
        if self.end_generations_here(session, lowest) && session.is_sealed() {
            self.record_end(session, EndExtent::GenerationsBelow(lowest));
        }
    }

    /// Ends the generations below `lowest` in this process. Returns whether some of them were still
    /// valid.
    pub(super) fn end_generations_here(&self, session: &Session, lowest: u32) -> bool {
        let EndedGenerations {
            has_ended_some,
            removed,
        } = session.end_generations_below(lowest);
        for random in &removed {
            self.rotated.remove(random);
        }
        has_ended_some
    }

    /// Ends the generations whose grace period is over, for a bounded number of sessions per call.
    pub(super) fn end_retired_generations(&self, now: Duration) {
        let due: Vec<_> = self
            .rotated
            .iter()
            .filter_map(|stored| {
                Some((
                    Arc::clone(&stored.session),
                    stored.session.due_lowest_generation(now)?,
                ))
            })
            .take(SWEEP_BATCH)
            .collect();
        for (session, lowest) in due {
            self.end_generations(&session, lowest);
        }
    }
}
