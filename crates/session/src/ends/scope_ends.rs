//! The ends in one scope: its floor and its tombstones.

use std::collections::VecDeque;

use portcullis_metadata::UnixTime;

use crate::{identifier::SessionId, journal::SessionEnd, scope::ScopeId};

/// The lowest valid generation of a session that has ended. No session has so many.
pub(crate) const ALL_GENERATIONS: u32 = u32::MAX;

/// The floor and the tombstones of one scope. Only owners have tombstones.
#[derive(Default)]
pub(super) struct ScopeEnds {
    /// The floor: sessions that were created before this time have ended. 0 without a floor.
    valid_from: u64,
    /// Ordered by creation time and session. None is below the floor.
    tombstones: VecDeque<Tombstone>,
}

/// The end of a session, or of its older identifiers.
#[derive(Clone, Copy)]
pub(super) struct Tombstone {
    /// When the session was created.
    pub(super) created: u64,
    pub(super) session: SessionId,
    /// The lowest generation that is still valid.
    pub(super) lowest_generation: u32,
}

impl ScopeEnds {
    /// Returns the time from which on sessions are valid; 0 without a floor.
    pub(super) fn valid_from(&self) -> u64 {
        self.valid_from
    }

    /// Returns the tombstones, ordered by creation time and session.
    pub(super) fn tombstones(&self) -> &VecDeque<Tombstone> {
        &self.tombstones
    }

    /// Returns whether an identifier of this generation has ended.
    pub(super) fn contains(&self, created: u64, session: &SessionId, generation: u32) -> bool {
        let is_entombed =
            || self.position(created, session).is_ok_and(|at| generation < self.tombstones[at].lowest_generation);
        created < self.valid_from || is_entombed()
    }

    /// Adds a tombstone, unless the floor includes it. A second tombstone of a session never revives a generation.
    pub(super) fn insert(&mut self, tombstone: Tombstone) {
        if tombstone.created < self.valid_from {
            return;
        }
        match self.position(tombstone.created, &tombstone.session) {
            Ok(known) => {
                let known = &mut self.tombstones[known];
                known.lowest_generation = known.lowest_generation.max(tombstone.lowest_generation);
            }
            Err(position) => self.tombstones.insert(position, tombstone),
        }
    }

    /// Raises the floor, and removes the tombstones that it includes.
    pub(super) fn raise(&mut self, valid_from: u64) {
        self.valid_from = self.valid_from.max(valid_from);
        self.remove_before(self.valid_from);
    }

    /// Removes the tombstones of sessions that were created before `time`.
    pub(super) fn remove_before(&mut self, time: u64) {
        let removed = self.tombstones.partition_point(|tombstone| tombstone.created < time);
        self.tombstones.drain(..removed);
    }

    /// Returns the lowest floor that includes this whole entry.
    pub(super) fn including_floor(&self) -> u64 {
        let newest = self.tombstones.back().map_or(0, |newest| newest.created.saturating_add(1));
        newest.max(self.valid_from)
    }

    /// Returns the position of a session's tombstone, or the one at which it would be inserted.
    fn position(&self, created: u64, session: &SessionId) -> Result<usize, usize> {
        self.tombstones.binary_search_by(|other| (other.created, &other.session).cmp(&(created, session)))
    }
}

impl Tombstone {
    /// Returns the end that a journal records.
    pub(super) fn to_end(self, owner: ScopeId) -> SessionEnd {
        let Self { created, session, lowest_generation } = self;
        let lowest_generation = (lowest_generation != ALL_GENERATIONS).then_some(lowest_generation);
        SessionEnd::Session { owner, session, created: UnixTime::from_millis(created), lowest_generation }
    }
}
