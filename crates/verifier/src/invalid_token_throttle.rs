//! [`Throttle`]: bounds the time that a thread spends on invalid tokens.

mod charges;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis_metadata::Clock;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout_at},
};

use self::charges::Charges;
use crate::error::VerifyError;

/// The maximum number of tokens that wait on one thread.
const MAX_WAITING: usize = 1024;

/// Limits the signature verifications of one thread.
///
/// A signature costs about as much as the rest of a request, and anyone can send tokens with
/// invalid signatures. The time that rejected tokens take is therefore [charged](Charges), and
/// uncached tokens wait in order until rejected tokens have taken at most a tenth of the thread's
/// time. No token waits if no token was rejected recently, or if no cached token was used recently.
#[derive(Debug)]
pub(crate) struct Throttle {
    charges: Charges,
    /// Has one permit, which the first of the waiting tokens holds.
    queue: Arc<Semaphore>,
    /// The number of waiting tokens.
    waiting: AtomicUsize,
}

thread_local! {
    static THROTTLE: Arc<Throttle> = Arc::default();
}

/// The permission to verify one signature. On drop its time is charged, unless it was
/// [accepted](Self::accept).
pub(crate) struct Permit<'c> {
    throttle: Arc<Throttle>,
    clock: &'c dyn Clock,
    started: Duration,
    is_accepted: bool,
    _queue: Option<OwnedSemaphorePermit>,
}

impl Throttle {
    /// Returns the throttle of the current thread. A future that moves to another thread keeps its
    /// throttle.
    pub(crate) fn of_this_thread() -> Arc<Self> {
        THROTTLE.try_with(Arc::clone).unwrap_or_default()
    }

    /// Records that this thread serves a cached token.
    pub(crate) fn record_served(now: Duration) {
        // Fails only while the thread ends.
        let _ = THROTTLE.try_with(|throttle| throttle.charges.record_served(now));
    }

    /// Returns a permit if no token has to wait. `now` is the monotonic time.
    pub(crate) fn try_acquire<'c>(
        self: &Arc<Self>,
        clock: &'c dyn Clock,
        now: Duration,
    ) -> Option<Permit<'c>> {
        let is_open =
            self.waiting.load(Ordering::Relaxed) == 0 && self.charges.delay(now).is_zero();
        is_open.then(|| self.permit(clock, now, None))
    }

    /// Waits for a permit behind the tokens that wait already. A dropped future leaves the queue.
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
        timeout_at(deadline, self.wait(clock))
            .await
            .map_err(|_| VerifyError::Busy)
    }

    /// Waits for the tokens before this one, and then until the charges are paid off.
    async fn wait<'c>(self: &Arc<Self>, clock: &'c dyn Clock) -> Permit<'c> {
        // Fails only if the semaphore is closed, which it never is.
        let queue = Arc::clone(&self.queue).acquire_owned().await.ok();
        loop {
            let now = clock.monotonic();
            match self.charges.delay(now) {
                Duration::ZERO => return self.permit(clock, now, queue),
                delay => sleep(delay).await,
            }
        }
    }

    fn permit<'c>(
        self: &Arc<Self>,
        clock: &'c dyn Clock,
        started: Duration,
        queue: Option<OwnedSemaphorePermit>,
    ) -> Permit<'c> {
        Permit {
            throttle: Arc::clone(self),
            clock,
            started,
            is_accepted: false,
            _queue: queue,
        }
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            charges: Charges::default(),
            queue: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
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
            self.throttle
                .charges
                .add(now, now.saturating_sub(self.started));
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
