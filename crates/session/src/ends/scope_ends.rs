//! The ends in one scope: its floor and its tombstones.

use std::collections::VecDeque;

use portcullis_metadata::UnixTime;

use super::IncludingEnd;
use crate::{
    identifier::SessionId,
    journal::{EndExtent, SessionEnd},
    scope::ScopeId,
};

/// The floor and the tombstones of one scope. Only owners have tombstones.
#[derive(Default)]
pub(super) struct ScopeEnds {
    /// The floor: sessions that were created before this time have ended. 0 without a floor.
    valid_from: u64,
    /// The highest floor that a journal has recorded.
    recorded_from: u64,
    /// Ordered by creation time and session. None is below the floor.
    tombstones: VecDeque<Tombstone>,
}

/// The end of a session, or of its older identifiers.
#[derive(Clone, Copy)]
pub(super) struct Tombstone {
    /// When the session was created.
    pub(super) created: u64,
    pub(super) session: SessionId,
    /// The [lowest generation](EndExtent::lowest_generation) that is still valid.
    pub(super) lowest_generation: u32,
    /// The lowest generation whose end no journal has recorded.
    pub(super) recorded_below: u32,
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
        let is_entombed = || {
            self.tombstone(created, session)
                .is_some_and(|tombstone| generation < tombstone.lowest_generation)
        };
        created < self.valid_from || is_entombed()
    }

    /// Returns the tombstone of a session; `None` if the floor has replaced it.
    pub(super) fn tombstone(&self, created: u64, session: &SessionId) -> Option<&Tombstone> {
        let at = self.position(created, session).ok()?;
        self.tombstones.get(at)
    }

    /// Returns the end that includes an identifier of this generation: the floor, or a tombstone.
    pub(super) fn including(
        &self,
        scope: ScopeId,
        created: u64,
        session: &SessionId,
        generation: u32,
    ) -> Option<IncludingEnd> {
        if created < self.valid_from {
            return Some(IncludingEnd::floor(
                Some(scope),
                self.valid_from,
                created < self.recorded_from,
            ));
        }
        let tombstone = self.tombstone(created, session)?;
        (generation < tombstone.lowest_generation).then(|| IncludingEnd {
            end: tombstone.to_end(scope),
            is_recorded: generation < tombstone.recorded_below,
        })
    }

    /// Marks the floor up to this time as recorded.
    pub(super) fn set_floor_recorded(&mut self, valid_from: u64) {
        self.recorded_from = self.recorded_from.max(valid_from);
    }

    /// Marks the end of the generations below `lowest` as recorded, if there is a tombstone.
    pub(super) fn set_recorded(&mut self, created: u64, session: &SessionId, lowest: u32) {
        if let Ok(at) = self.position(created, session) {
            let known = &mut self.tombstones[at];
            known.recorded_below = known.recorded_below.max(lowest);
        }
    }

    /// Adds a tombstone, unless the floor includes it. A second tombstone of a session never
    /// revives a generation.
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
        let removed = self
            .tombstones
            .partition_point(|tombstone| tombstone.created < time);
        self.tombstones.drain(..removed);
    }

    /// Returns the lowest floor that includes this whole entry.
    pub(super) fn including_floor(&self) -> u64 {
        let newest = self
            .tombstones
            .back()
            .map_or(0, |newest| newest.created.saturating_add(1));
        newest.max(self.valid_from)
    }

    /// Returns the position of a session's tombstone, or the one at which it would be inserted.
    fn position(&self, created: u64, session: &SessionId) -> Result<usize, usize> {
        self.tombstones
            .binary_search_by(|other| (other.created, &other.session).cmp(&(created, session)))
    }
}

impl Tombstone {
    /// Returns what of the session has ended.
    pub(super) fn extent(&self) -> EndExtent {
        EndExtent::of_lowest_generation(self.lowest_generation)
    }

    /// Returns the end that a journal records.
    pub(super) fn to_end(self, owner: ScopeId) -> SessionEnd {
        SessionEnd::Session {
            owner,
            session: self.session,
            created: UnixTime::from_millis(self.created),
            extent: self.extent(),
        }
    }
}
