//! [`LastUses`]: the last uses of sessions by other processes, or by this one before a restart.

use std::ops::RangeInclusive;

use dashmap::DashMap;
use portcullis_metadata::UnixTime;

use crate::{identifier::SessionId, journal::LastUse};

/// The last uses that other processes have recorded, or this one before a restart.
///
/// The table is bounded. A session that does not fit can be adopted only within the idle timeout of
/// its creation.
pub(crate) struct LastUses {
    max: usize,
    /// The last uses in milliseconds of Unix time.
    uses: DashMap<SessionId, u64>,
}

impl LastUses {
    /// Returns an empty table for up to `max` sessions.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            uses: DashMap::new(),
        }
    }

    /// Adds last uses, as far as there is space. A later one replaces an earlier one. Uses before
    /// the valid times are ignored; one after them counts as the last valid time, so that every
    /// entry expires.
    pub(crate) fn import(&self, uses: &[LastUse], valid: RangeInclusive<UnixTime>) {
        let mut free = self.max.saturating_sub(self.uses.len());
        for LastUse { session, time } in uses.iter().filter(|used| used.time >= *valid.start()) {
            let time = time.min(valid.end()).as_millis();
            if let Some(mut known) = self.uses.get_mut(session) {
                *known = time.max(*known);
            } else if free > 0 {
                free -= 1;
                self.uses.insert(*session, time);
            }
        }
    }

    /// Returns the last known use of a session.
    pub(crate) fn get(&self, session: &SessionId) -> Option<UnixTime> {
        self.uses
            .get(session)
            .map(|time| UnixTime::from_millis(*time))
    }

    /// Removes the use of a session that has ended.
    pub(crate) fn remove(&self, session: &SessionId) {
        self.uses.remove(session);
    }

    /// Removes the uses before `oldest`.
    pub(crate) fn prune(&self, oldest: UnixTime) {
        if !self.uses.is_empty() {
            self.uses.retain(|_, time| *time >= oldest.as_millis());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(session: u8, secs: u64) -> LastUse {
        LastUse {
            session: [session; 16],
            time: UnixTime::from_secs(secs),
        }
    }

    fn valid(first: u64, last: u64) -> RangeInclusive<UnixTime> {
        UnixTime::from_secs(first)..=UnixTime::from_secs(last)
    }

    fn known<const N: usize>(uses: &LastUses, sessions: [u8; N]) -> [Option<u64>; N] {
        sessions.map(|session| uses.get(&[session; 16]).map(UnixTime::as_secs))
    }

    /// E12: the latest use counts, and the table is bounded.
    #[test]
    fn the_latest_use_counts() {
        let uses = LastUses::new(2);
        uses.import(
            &[used(1, 5), used(1, 3), used(2, 7), used(3, 9)],
            valid(0, 9),
        );
        assert_eq!(known(&uses, [1, 2, 3]), [Some(5), Some(7), None]);
        uses.import(&[used(2, 8)], valid(0, 9));
        uses.prune(UnixTime::from_secs(6));
        assert_eq!(known(&uses, [1, 2]), [None, Some(8)]);
        uses.remove(&[2; 16]);
        uses.import(&[used(3, 9), used(4, 9)], valid(0, 9));
        assert_eq!(known(&uses, [2, 3, 4]), [None, Some(9), Some(9)]);
    }

    /// E12, E13: expired uses take no space, and no time keeps an entry in the table for good.
    #[test]
    fn every_use_expires() {
        let uses = LastUses::new(2);
        uses.import(
            &[used(1, 4), used(2, 5), used(3, u64::MAX / 1000)],
            valid(5, 20),
        );
        assert_eq!(known(&uses, [1, 2, 3]), [None, Some(5), Some(20)]);
        uses.prune(UnixTime::from_secs(21));
        assert!(uses.uses.is_empty());
    }
}
