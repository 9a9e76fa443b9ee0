use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Rejected tokens may take one part in this many of a thread's time while it serves cached tokens.
pub(super) const PARTS: u32 = 10;
/// A thread serves cached tokens until this long after the last one.
pub(super) const SERVING_PERIOD: Duration = Duration::from_millis(5);
/// The maximum unused time that is kept for rejected tokens. Timers have a resolution of a
/// millisecond.
const MAX_CREDIT: Duration = Duration::from_millis(2);
/// The maximum time charged for one rejected token. A thread that was descheduled did not compute
/// all the time.
pub(super) const MAX_CHARGE: Duration = Duration::from_millis(2);
/// The maximum time until all charges are paid off.
const MAX_DEBT: Duration = MAX_CHARGE.saturating_mul(PARTS);

/// The charges of one thread.
///
/// The charge for a rejected token is [`PARTS`] times the time that it took. Charges are paid off
/// by the time that passes, one after the other. If the next token waits until all are paid off,
/// rejected tokens take one part in `PARTS`.
///
/// All times are those of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Charges {
    /// When all charges are paid off, in nanoseconds.
    paid_off: AtomicU64,
    /// When a cached token was last used, in nanoseconds.
    last_served: AtomicU64,
}

impl Charges {
    /// Records that the thread serves a cached token.
    pub(super) fn record_served(&self, now: Duration) {
        self.last_served.store(nanos(now), Ordering::Relaxed);
    }

    /// Charges the time of a rejected token.
    pub(super) fn add(&self, now: Duration, elapsed: Duration) {
        let charge = nanos(elapsed.min(MAX_CHARGE) * PARTS);
        let earliest = nanos(now.saturating_sub(MAX_CREDIT));
        let latest = nanos(now.saturating_add(MAX_DEBT));
        let add = |paid_off: u64| Some(paid_off.max(earliest).saturating_add(charge).min(latest));
        let _ = self
            .paid_off
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns how long the next token must wait: until all charges are paid off, or the thread no
    /// longer serves cached tokens.
    pub(super) fn delay(&self, now: Duration) -> Duration {
        let debt = self.paid_off().saturating_sub(now);
        if debt.is_zero() {
            return Duration::ZERO;
        }
        let last_served = Duration::from_nanos(self.last_served.load(Ordering::Relaxed));
        let is_of_other_clock = debt > MAX_DEBT || last_served > now;
        if is_of_other_clock {
            return Duration::ZERO;
        }
        let serving_time = last_served
            .saturating_add(SERVING_PERIOD)
            .saturating_sub(now);
        debt.min(serving_time)
    }

    /// Returns when all charges are paid off.
    pub(super) fn paid_off(&self) -> Duration {
        Duration::from_nanos(self.paid_off.load(Ordering::Relaxed))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
