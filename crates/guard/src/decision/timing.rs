//! [`Timing`]: when a part of a request began, and how long it took.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// When a part of a request began, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// The time from the arrival of the request to the beginning of the part.
    pub start: Duration,
    /// The duration: until the end of the part, or until the decision if it has not ended.
    pub duration: Duration,
    /// Whether the part has ended.
    pub has_ended: bool,
}

impl Timing {
    /// Creates the timing of a part that has ended, for tests of a
    /// [`DecisionSink`](crate::DecisionSink).
    pub fn new(start: Duration, duration: Duration) -> Self {
        Self {
            start,
            duration,
            has_ended: true,
        }
    }
}

/// Measures a part of a request. Its times are nanoseconds of the clock, or 0 if they are not
/// known.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    started: AtomicU64,
    ended: AtomicU64,
}

impl Stopwatch {
    /// Sets the time of the beginning. Only the first call has an effect.
    pub(crate) fn start(&self, now: Duration) {
        // If it fails, the part has begun before.
        let _ = self.started.compare_exchange(
            0,
            nanoseconds(now),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Sets the time of the end. The last call counts.
    pub(crate) fn end(&self, now: Duration) {
        self.ended.store(nanoseconds(now), Ordering::Relaxed);
    }

    /// Returns the timing of a request that arrived at `arrival`. `None` if the part has not begun.
    pub(crate) fn timing(&self, arrival: Duration, now: Duration) -> Option<Timing> {
        let read = |time: &AtomicU64| {
            Some(time.load(Ordering::Relaxed))
                .filter(|time| *time > 0)
                .map(Duration::from_nanos)
        };
        let started = read(&self.started)?;
        let ended = read(&self.ended);
        Some(Timing {
            start: started.saturating_sub(arrival),
            duration: ended.unwrap_or(now).saturating_sub(started),
            has_ended: ended.is_some(),
        })
    }
}

/// Returns a time in nanoseconds, at least 1, because 0 means that it is not known.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_measured() {
        let [arrival, start, now, end] = [5, 7, 10, 9].map(Duration::from_secs);
        let stopwatch = Stopwatch::default();
        assert_eq!(stopwatch.timing(arrival, now), None);
        stopwatch.start(start);
        stopwatch.start(end);
        let running = Timing {
            has_ended: false,
            ..Timing::new(Duration::from_secs(2), Duration::from_secs(3))
        };
        assert_eq!(stopwatch.timing(arrival, now), Some(running));
        stopwatch.end(end);
        assert_eq!(
            stopwatch.timing(arrival, now),
            Some(Timing::new(Duration::from_secs(2), Duration::from_secs(2)))
        );
    }
}
