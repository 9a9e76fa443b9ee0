//! [`RemovalSchedule`]: when a replica removes records that are not needed any more, without I/O.

use tokio::time::{Duration, Instant};

use super::super::commands::BeatResponse;

/// How often expired records are removed.
pub(super) const INTERVAL: Duration = Duration::from_secs(60);
/// The list of records is not searched before it has grown by this number.
const MIN_GROWTH: u64 = 65_536;

/// When expired records, and ends that other ends include, are to be removed.
#[derive(Default)]
pub(super) struct RemovalSchedule {
    /// When expired records were last removed.
    last: Option<Instant>,
    /// The number of ends after the last search.
    needed: u64,
    search_is_due: bool,
}

impl RemovalSchedule {
    /// Updates the schedule with the response to a beat. Of all replicas, the one with the lowest
    /// name searches the list, when it has doubled since its last search.
    pub(super) fn update(&mut self, response: &BeatResponse) {
        self.search_is_due = response.is_lowest && response.records > 2 * self.needed + MIN_GROWTH;
    }

    /// Returns whether expired records are to be removed now: once a minute, by each replica.
    pub(super) fn take_expired_due(&mut self, now: Instant) -> bool {
        let is_due = self
            .last
            .is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }

    /// Returns whether the list is to be searched now.
    pub(super) fn take_search_due(&mut self) -> bool {
        std::mem::take(&mut self.search_is_due)
    }

    /// Records how many ends a search has found to be needed.
    pub(super) fn searched(&mut self, needed: u64) {
        self.needed = needed;
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::{generation::Generation, membership::Beat},
        *,
    };

    fn response(records: u64, is_lowest: bool) -> BeatResponse {
        let beat = Beat {
            generation: Generation([1; 16]),
            age: Duration::ZERO,
            others_have_written: true,
        };
        BeatResponse {
            beat,
            records,
            is_lowest,
            alive: 2,
        }
    }

    /// E13: one replica searches the list, and not before it has doubled.
    #[test]
    fn a_long_list_is_searched_once() {
        let mut schedule = RemovalSchedule::default();
        schedule.update(&response(MIN_GROWTH, true));
        assert!(!schedule.take_search_due(), "the list is short");
        schedule.update(&response(MIN_GROWTH + 1, false));
        assert!(!schedule.take_search_due(), "another replica searches");
        schedule.update(&response(MIN_GROWTH + 1, true));
        assert!(schedule.take_search_due());
        assert!(!schedule.take_search_due(), "taken before");

        schedule.searched(50_000);
        schedule.update(&response(MIN_GROWTH + 100_000, true));
        assert!(!schedule.take_search_due());

        schedule.update(&response(MIN_GROWTH + 100_001, true));
        assert!(schedule.take_search_due());
    }

    #[test]
    fn expired_records_are_removed_once_a_minute() {
        let mut schedule = RemovalSchedule::default();
        let start = Instant::now();
        assert!(schedule.take_expired_due(start));
        assert!(!schedule.take_expired_due(start + INTERVAL / 2));
        assert!(schedule.take_expired_due(start + INTERVAL));
        assert!(!schedule.take_expired_due(start + INTERVAL));
    }
}
