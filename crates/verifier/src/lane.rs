//! Whose turn it is to verify a signature, on a thread that serves known tokens meanwhile.

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

use crate::VerifyError;

/// Tokens that are refused may take one part in so many of a thread's time, while known ones are served there.
const PARTS: u32 = 10;
/// For so long after a known token the thread counts as serving known ones.
const BUSY: Duration = Duration::from_millis(5);
/// How much of the time that refused tokens did not take is kept for them: a timer wakes no more often than each
/// millisecond, and no more exactly.
const SAVED: Duration = Duration::from_millis(2);
/// What one refused token counts as at most: a thread that was put aside meanwhile did not compute all that time.
const DEAREST: Duration = Duration::from_millis(2);
/// More is never owed.
const MOST_OWED: Duration = DEAREST.saturating_mul(PARTS);
/// How many tokens may wait for their turn on one thread.
const MOST_WAITING: usize = 1024;

/// The order in which one thread verifies the signatures of tokens that it does not know.
///
/// A signature costs about as much as all the rest of a request, and anybody can send a token with an invalid one. So
/// the time that refused tokens took is counted, and whatever is not known yet waits until that is no more than a
/// tenth of the thread's time, the first one first. Nobody waits where no token was refused of late, nor where no known
/// token was used: then there is nobody to be kept from being served.
#[derive(Debug)]
pub(crate) struct Lane {
    order: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// When the time that refused tokens took is made up for, in nanoseconds of the clock.
    made_up: AtomicU64,
    /// When a known token was last used, in nanoseconds of the clock.
    served: AtomicU64,
}

thread_local! {
    static LANE: Arc<Lane> = Arc::default();
}

/// The right to verify one signature. Dropped, it counts as a refusal, and its time is charged; unless it is
/// [accepted](Self::accept).
pub(crate) struct Turn<'c> {
    lane: Arc<Lane>,
    clock: &'c dyn Clock,
    started: Duration,
    is_free: bool,
    _first: Option<OwnedSemaphorePermit>,
}

impl Lane {
    /// The lane of the thread that asks. Whoever goes on on another thread keeps its place here.
    pub(crate) fn of_this_thread() -> Arc<Self> {
        LANE.try_with(Arc::clone).unwrap_or_default()
    }

    /// Notes that this thread serves a known token.
    pub(crate) fn note_served(now: Duration) {
        // A thread that is ending serves nobody.
        let _ = LANE.try_with(|lane| lane.served.store(nanos(now), Ordering::Relaxed));
    }

    /// A turn, where nobody has to wait for one. `now` is the clock's monotonic reading.
    pub(crate) fn turn_at_once<'c>(self: &Arc<Self>, clock: &'c dyn Clock, now: Duration) -> Option<Turn<'c>> {
        let is_open = self.waiting.load(Ordering::Relaxed) == 0 && self.wait(now).is_zero();
        is_open.then(|| self.turn(clock, now, None))
    }

    /// A turn, after those who wait already. Whoever stops waiting leaves its place.
    ///
    /// # Errors
    /// [`VerifyError::Busy`] when too many wait, and when the turn has not come by the deadline.
    pub(crate) async fn turn_in_order<'c>(
        self: &Arc<Self>,
        clock: &'c dyn Clock,
        deadline: Instant,
    ) -> Result<Turn<'c>, VerifyError> {
        if Handle::try_current().is_err() {
            // Outside a runtime nothing would wake whoever waits.
            return Ok(self.turn(clock, clock.monotonic(), None));
        }
        let _place = Place::take(self)?;
        let first = async {
            let first = Arc::clone(&self.order).acquire_owned().await.ok();
            loop {
                let now = clock.monotonic();
                match self.wait(now) {
                    Duration::ZERO => return self.turn(clock, now, first),
                    wait => sleep(wait).await,
                }
            }
        };
        timeout_at(deadline, first).await.map_err(|_| VerifyError::Busy)
    }

    fn turn<'c>(
        self: &Arc<Self>,
        clock: &'c dyn Clock,
        started: Duration,
        first: Option<OwnedSemaphorePermit>,
    ) -> Turn<'c> {
        Turn { lane: Arc::clone(self), clock, started, is_free: false, _first: first }
    }

    /// How long the next turn has to wait.
    fn wait(&self, now: Duration) -> Duration {
        let made_up = self.made_up.load(Ordering::Relaxed);
        let left = Duration::from_nanos(made_up.saturating_sub(nanos(now)));
        // What cannot be owed, or is yet to come, was counted by another clock.
        if left.is_zero() || left > MOST_OWED {
            return Duration::ZERO;
        }
        let served = Duration::from_nanos(self.served.load(Ordering::Relaxed));
        if served > now { Duration::ZERO } else { left.min(served.saturating_add(BUSY).saturating_sub(now)) }
    }

    /// Counts the time of a refused token.
    fn charge(&self, now: Duration, took: Duration) {
        let price = nanos(took.min(DEAREST) * PARTS);
        let (earliest, latest) = (nanos(now.saturating_sub(SAVED)), nanos(now.saturating_add(MOST_OWED)));
        let add = |made_up: u64| Some(made_up.max(earliest).saturating_add(price).min(latest));
        let _ = self.made_up.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            order: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            made_up: AtomicU64::new(0),
            served: AtomicU64::new(0),
        }
    }
}

impl Turn<'_> {
    /// When it began, by the clock's monotonic reading.
    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    /// Ends it without a charge: the token is good, or there was nothing to compute.
    pub(crate) fn accept(mut self) {
        self.is_free = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_free {
            let now = self.clock.monotonic();
            self.lane.charge(now, now.saturating_sub(self.started));
        }
    }
}

/// A place among those who wait, given back when dropped.
struct Place<'l>(&'l Lane);

impl<'l> Place<'l> {
    fn take(lane: &'l Lane) -> Result<Self, VerifyError> {
        let place = Self(lane);
        // The place is given back where there was none left, too.
        if lane.waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING { Ok(place) } else { Err(VerifyError::Busy) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
