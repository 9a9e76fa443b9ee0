//! The last uses of sessions by other processes, or by this one before a restart.

use dashmap::DashMap;
use portcullis_metadata::UnixTime;

use crate::{identifier::SessionId, journal::LastUse};

/// The last uses that other processes have recorded, or this one before a restart.
///
/// The table is bounded. A session that does not fit can be adopted only within the idle timeout of its creation.
pub(crate) struct LastUses {
    max: usize,
    /// The last uses in milliseconds of Unix time.
    uses: DashMap<SessionId, u64>,
}

impl LastUses {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, uses: DashMap::new() }
    }

    /// Adds last uses. A later one replaces an earlier one.
    pub(crate) fn import(&self, uses: &[LastUse]) {
        let mut free = self.max.saturating_sub(self.uses.len());
        for LastUse { session, time } in uses {
            if let Some(mut known) = self.uses.get_mut(session) {
                *known = time.as_millis().max(*known);
            } else if free > 0 {
                free -= 1;
                self.uses.insert(*session, time.as_millis());
            }
        }
    }

    pub(crate) fn get(&self, session: &SessionId) -> Option<UnixTime> {
        self.uses.get(session).map(|time| UnixTime::from_millis(*time))
    }

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

    /// E12: the latest use counts, and the table is bounded.
    #[test]
    fn the_latest_use_counts() {
        let uses = LastUses::new(2);
        let used = |session: u8, secs| LastUse { session: [session; 16], time: UnixTime::from_secs(secs) };
        uses.import(&[used(1, 5), used(1, 3), used(2, 7), used(3, 9)]);
        let known = |session: u8| uses.get(&[session; 16]).map(UnixTime::as_secs);
        assert_eq!([1, 2, 3].map(known), [Some(5), Some(7), None]);
        uses.import(&[used(2, 8)]);
        uses.prune(UnixTime::from_secs(6));
        assert_eq!([1, 2].map(known), [None, Some(8)]);
        uses.remove(&[2; 16]);
        uses.import(&[used(3, 9), used(4, 9)]);
        assert_eq!([2, 3, 4].map(known), [None, Some(9), Some(9)]);
    }
}
