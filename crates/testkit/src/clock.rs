//! [`ManualClock`]: a clock that tests set.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use portcullis_metadata::{Clock, UnixTime};

/// A clock that moves only when a test advances it. Clones share the time.
///
/// The wall clock starts at 2026-01-01T00:00:00Z. The monotonic time starts at one hour, so that
/// ages differ from zero.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Times>);

/// The times of a clock and its clones.
#[derive(Debug)]
struct Times {
    unix_millis: AtomicU64,
    monotonic_millis: AtomicU64,
}

impl ManualClock {
    /// The initial wall-clock time: 2026-01-01T00:00:00Z.
    pub const START: UnixTime = UnixTime::from_secs(1_767_225_600);

    /// Creates a clock at [`START`](Self::START).
    pub fn new() -> Self {
        Self(Arc::new(Times {
            unix_millis: AtomicU64::new(Self::START.as_millis()),
            monotonic_millis: AtomicU64::new(3_600_000),
        }))
    }

    /// Advances both times, by whole milliseconds.
    pub fn advance(&self, duration: Duration) {
        let millis =
            u64::try_from(duration.as_millis()).expect("a duration of less than 500 million years");
        self.0.unix_millis.fetch_add(millis, Ordering::SeqCst);
        self.0.monotonic_millis.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets only the wall clock, forward or back, as an administrator or NTP does.
    pub fn set_unix(&self, time: UnixTime) {
        self.0.unix_millis.store(time.as_millis(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixTime {
        UnixTime::from_millis(self.0.unix_millis.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.monotonic_millis.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_times_advance_and_the_wall_clock_can_be_set() {
        let clock = ManualClock::new();
        let before = clock.monotonic();
        clock.clone().advance(Duration::from_secs(90));
        assert_eq!(
            clock.now(),
            ManualClock::START.saturating_add(Duration::from_secs(90))
        );
        assert_eq!(clock.monotonic() - before, Duration::from_secs(90));
        clock.set_unix(UnixTime::from_secs(1));
        assert_eq!(clock.now().as_secs(), 1);
        assert_eq!(clock.monotonic() - before, Duration::from_secs(90));
    }
}
