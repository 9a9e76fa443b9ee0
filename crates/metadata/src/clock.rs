use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point in time as milliseconds since 1970-01-01T00:00:00Z.
///
/// All arithmetic saturates, so that no claimed date, however absurd, can panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(u64);

impl UnixTime {
    /// From whole seconds since the epoch.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// From milliseconds since the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This moment moved into the future by `by`.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis(by)))
    }

    /// This moment moved into the past by `by`, at the earliest the epoch.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
    }

    /// How much later this moment is than `earlier`; zero where it is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Where every crate of this workspace takes the time from, so that tests can move it by hand.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock: what token lifetimes are judged by.
    fn unix(&self) -> UnixTime;

    /// Time since an arbitrary fixed moment, never running backwards: what time-outs and ages are
    /// judged by.
    fn monotonic(&self) -> Duration;
}

/// The machine's own clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose [`monotonic`](Clock::monotonic) time begins now.
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn unix(&self) -> UnixTime {
        #[expect(clippy::disallowed_methods, reason = "this is the clock that all others go through")]
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixTime(millis(since_epoch))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C7: arithmetic at the ends of time saturates.
    #[test]
    fn arithmetic_saturates() {
        let last = UnixTime::from_secs(u64::MAX);
        assert_eq!(last, UnixTime::from_millis(u64::MAX));
        assert_eq!(last.plus(Duration::MAX), last);
        assert_eq!(UnixTime::from_secs(5).minus(Duration::from_secs(6)), UnixTime::default());
        assert_eq!(UnixTime::from_secs(5).minus(Duration::MAX), UnixTime::default());
        assert_eq!(UnixTime::from_secs(5).since(UnixTime::from_secs(6)), Duration::ZERO);
        assert_eq!(UnixTime::from_secs(6).since(UnixTime::from_millis(5_999)), Duration::from_millis(1));
    }

    #[test]
    fn the_system_clock_is_past_2025_and_never_runs_backwards() {
        let clock = SystemClock::new();
        assert!(clock.unix() > UnixTime::from_secs(1_735_689_600));
        let earlier = clock.monotonic();
        assert!(clock.monotonic() >= earlier);
    }
}
