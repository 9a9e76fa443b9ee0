//! [`Clock`], [`SystemClock`], [`Now`] and [`UnixTime`].

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
///
/// Arithmetic saturates, so no date from a token causes a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Creates a time from seconds since the epoch.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Creates a time from milliseconds since the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time for a notation with years of four digits, such as RFC 3339. A time after
    /// the year 9999 becomes the last millisecond of that year, so no time from a token, an
    /// identifier or another process makes the notation fail.
    pub fn until_year_9999(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0.min(LAST_OF_YEAR_9999))
    }

    /// Returns the time that is `duration` later.
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Returns the time that is `duration` earlier, at the earliest the epoch.
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is not earlier.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// 9999-12-31T23:59:59.999Z, in milliseconds.
const LAST_OF_YEAR_9999: u64 = 253_402_300_799_999;

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One reading of both clocks. It travels with the work that it was read for, so that one request
/// reads the clocks once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The wall clock, which the times in tokens and records are compared with.
    pub unix: UnixTime,
    /// The monotonic clock, which ages and durations are measured with.
    pub monotonic: Duration,
}

/// The source of time for all crates of this workspace. Tests use a clock that they set.
pub trait Clock: Send + Sync + 'static {
    /// Returns the wall-clock time, used for token lifetimes.
    fn now(&self) -> UnixTime;

    /// Returns the time since an arbitrary fixed moment. It never decreases. Used for timeouts and
    /// ages.
    fn monotonic(&self) -> Duration;

    /// Reads both clocks.
    fn read(&self) -> Now {
        Now {
            unix: self.now(),
            monotonic: self.monotonic(),
        }
    }
}

/// The operating system's clocks. A wall clock that is set before 1970 counts as 1970.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Creates a clock whose [`monotonic`](Clock::monotonic) time starts at zero.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> UnixTime {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the only place that reads the system time"
        )]
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        UnixTime(millis(since_epoch))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C7: every time has a notation with years of four digits.
    #[test]
    fn late_times_are_limited_to_the_year_9999() {
        let last = UNIX_EPOCH + Duration::from_millis(LAST_OF_YEAR_9999);
        for (millis, expected) in [
            (0, UNIX_EPOCH),
            (LAST_OF_YEAR_9999, last),
            (LAST_OF_YEAR_9999 + 1, last),
            (u64::MAX, last),
        ] {
            assert_eq!(
                UnixTime::from_millis(millis).until_year_9999(),
                expected,
                "{millis}"
            );
        }
    }

    /// C7: arithmetic saturates at both ends.
    #[test]
    fn arithmetic_saturates() {
        let last = UnixTime::from_secs(u64::MAX);
        assert_eq!(last, UnixTime::from_millis(u64::MAX));
        assert_eq!(last.saturating_add(Duration::MAX), last);
        assert_eq!(
            UnixTime::from_secs(5).saturating_sub(Duration::from_secs(6)),
            UnixTime::default()
        );
        assert_eq!(
            UnixTime::from_secs(5).saturating_sub(Duration::MAX),
            UnixTime::default()
        );
        assert_eq!(
            UnixTime::from_secs(5).saturating_duration_since(UnixTime::from_secs(6)),
            Duration::ZERO
        );
        assert_eq!(
            UnixTime::from_secs(6).saturating_duration_since(UnixTime::from_millis(5_999)),
            Duration::from_millis(1)
        );
    }

    #[test]
    fn the_system_clock_is_past_2025_and_monotonic() {
        let clock = SystemClock::new();
        assert!(clock.now() > UnixTime::from_secs(1_735_689_600));
        let earlier = clock.monotonic();
        assert!(clock.monotonic() >= earlier);
    }
}
