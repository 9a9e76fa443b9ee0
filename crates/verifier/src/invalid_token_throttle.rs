//! [`Throttle`]: bounds the time that a thread spends on invalid tokens.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis_metadata::Clock;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout_at},
};

use crate::error::VerifyError;

/// Rejected tokens may take one part in this many of a thread's time while it serves cached tokens.
const PARTS: u32 = 10;
/// A thread serves cached tokens until this long after the last one.
const SERVING_PERIOD: Duration = Duration::from_millis(5);
/// The maximum unused time that is kept for rejected tokens. Timers have a resolution of a millisecond.
const MAX_CREDIT: Duration = Duration::from_millis(2);
/// The maximum time charged for one rejected token. A thread that was descheduled did not compute all the time.
const MAX_CHARGE: Duration = Duration::from_millis(2);
/// The maximum time until all charges are paid off.
const MAX_DEBT: Duration = MAX_CHARGE.saturating_mul(PARTS);
/// The maximum number of tokens that wait on one thread.
const MAX_WAITING: usize = 1024;

/// Limits the signature verifications of one thread.
///
/// A signature costs about as much as the rest of a request, and anyone can send tokens with invalid signatures. The
/// time that rejected tokens take is therefore charged, and uncached tokens wait in order until the charges are at most
/// a tenth of the thread's time. No token waits if no token was rejected recently, or if no cached token was used
/// recently.
#[derive(Debug)]
pub(crate) struct Throttle {
    queue: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// The monotonic time at which all charges are paid off, in nanoseconds.
    paid_off: AtomicU64,
    /// The monotonic time at which a cached token was last used, in nanoseconds.
    last_served: AtomicU64,
}

thread_local! {
    static THROTTLE: Arc<Throttle> = Arc::default();
}

/// The permission to verify one signature. On drop its time is charged, unless it was [accepted](Self::accept).
pub(crate) struct Permit<'c> {
    throttle: Arc<Throttle>,
    clock: &'c dyn Clock,
    started: Duration,
    is_accepted: bool,
    _queue: Option<OwnedSemaphorePermit>,
}

impl Throttle {
    /// Returns the throttle of the current thread. A future that moves to another thread keeps its throttle.
    pub(crate) fn of_this_thread() -> Arc<Self> {
        THROTTLE.try_with(Arc::clone).unwrap_or_default()
    }

    /// Records that this thread serves a cached token.
    pub(crate) fn record_served(now: Duration) {
        // Fails only while the thread ends.
        let _ = THROTTLE.try_with(|throttle| throttle.last_served.store(nanos(now), Ordering::Relaxed));
    }

    /// Returns a permit if no token has to wait. `now` is the monotonic time.
    pub(crate) fn try_acquire<'c>(self: &Arc<Self>, clock: &'c dyn Clock, now: Duration) -> Option<Permit<'c>> {
        let is_open = self.waiting.load(Ordering::Relaxed) == 0 && self.delay(now).is_zero();
        is_open.then(|| self.permit(clock, now, None))
    }

    /// Waits for a permit behind the tokens that wait already. A dropped future leaves the queue.
    ///
    /// # Errors
    /// Fails with [`VerifyError::Busy`] if too many tokens wait, or at the deadline.
    pub(crate) async fn acquire<'c>(
        self: &Arc<Self>,
        clock: &'c dyn Clock,
        deadline: Instant,
    ) -> Result<Permit<'c>, VerifyError> {
        if Handle::try_current().is_err() {
            // There are no timers outside a runtime.
            return Ok(self.permit(clock, clock.monotonic(), None));
        }
        let _waiting = Waiting::enter(self)?;
        let permit = async {
            let queue = Arc::clone(&self.queue).acquire_owned().await.ok();
            loop {
                let now = clock.monotonic();
                match self.delay(now) {
                    Duration::ZERO => return self.permit(clock, now, queue),
                    delay => sleep(delay).await,
                }
            }
        };
        timeout_at(deadline, permit).await.map_err(|_| VerifyError::Busy)
    }

    fn permit<'c>(
        self: &Arc<Self>,
        clock: &'c dyn Clock,
        started: Duration,
        queue: Option<OwnedSemaphorePermit>,
    ) -> Permit<'c> {
        Permit { throttle: Arc::clone(self), clock, started, is_accepted: false, _queue: queue }
    }

    /// Returns the time until the next permit.
    fn delay(&self, now: Duration) -> Duration {
        let paid_off = self.paid_off.load(Ordering::Relaxed);
        let debt = Duration::from_nanos(paid_off.saturating_sub(nanos(now)));
        // A larger debt, and a use in the future, come from another clock and are ignored.
        if debt.is_zero() || debt > MAX_DEBT {
            return Duration::ZERO;
        }
        let last_served = Duration::from_nanos(self.last_served.load(Ordering::Relaxed));
        if last_served > now {
            return Duration::ZERO;
        }
        debt.min(last_served.saturating_add(SERVING_PERIOD).saturating_sub(now))
    }

    /// Charges the time of a rejected token.
    fn charge(&self, now: Duration, elapsed: Duration) {
        let charge = nanos(elapsed.min(MAX_CHARGE) * PARTS);
        let (earliest, latest) = (nanos(now.saturating_sub(MAX_CREDIT)), nanos(now.saturating_add(MAX_DEBT)));
        let add = |paid_off: u64| Some(paid_off.max(earliest).saturating_add(charge).min(latest));
        let _ = self.paid_off.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            queue: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            paid_off: AtomicU64::new(0),
            last_served: AtomicU64::new(0),
        }
    }
}

impl Permit<'_> {
    /// Returns the monotonic time at which the permit was issued.
    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    /// Ends the permit without a charge, because the token is valid or no signature was computed.
    pub(crate) fn accept(mut self) {
        self.is_accepted = true;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.is_accepted {
            let now = self.clock.monotonic();
            self.throttle.charge(now, now.saturating_sub(self.started));
        }
    }
}

/// Counts one waiting token until it is dropped.
struct Waiting<'t>(&'t Throttle);

impl<'t> Waiting<'t> {
    fn enter(throttle: &'t Throttle) -> Result<Self, VerifyError> {
        let waiting = Self(throttle);
        // If the limit is reached, dropping the value reverts the count.
        if throttle.waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING {
            Ok(waiting)
        } else {
            Err(VerifyError::Busy)
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
