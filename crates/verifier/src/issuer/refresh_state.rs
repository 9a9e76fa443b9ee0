//! [`RefreshState`]: when an issuer's metadata and keys are fetched, and how the last fetch ended.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{activity::Counts, refresh_error::RefreshError};
use crate::single_flight::{Joined, SingleFlight};

/// The result of a refresh.
pub(crate) type RefreshResult = Result<(), RefreshError>;

/// Limits the refreshes of one issuer: one at a time, and one per cooldown that tokens cause.
pub(crate) struct RefreshState {
    running: Arc<SingleFlight<(), RefreshResult>>,
    times: Mutex<Times>,
    counts: Counts,
}

#[derive(Default)]
struct Times {
    /// When a token last started a refresh.
    started_by_token: Option<Duration>,
    /// When the background refresh starts the next one.
    scheduled: Option<Duration>,
    last: Option<RefreshResult>,
}

/// What requests a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A token, which anyone can forge. The cooldown applies.
    Token,
    /// The background refresh or the application. The cooldown does not apply.
    Application,
}

impl RefreshState {
    pub(crate) fn new() -> Self {
        Self { running: SingleFlight::new(1), times: Mutex::default(), counts: Counts::default() }
    }

    /// Joins the running refresh or becomes its leader. Returns `None` during the cooldown.
    pub(crate) fn join(
        &self,
        requester: Requester,
        now: Duration,
        cooldown: Duration,
    ) -> Option<Joined<(), RefreshResult>> {
        let mut times = self.lock();
        let joined = self.running.join(());
        if requester == Requester::Token && matches!(joined, Joined::Leader(..)) {
            if times.started_by_token.is_some_and(|started| now.saturating_sub(started) < cooldown) {
                return None;
            }
            times.started_by_token = Some(now);
        }
        Some(joined)
    }

    /// Records the result of a refresh.
    pub(crate) fn record(&self, result: RefreshResult) {
        self.counts.add(result.is_err());
        self.lock().last = Some(result);
    }

    /// Returns the number of refreshes, and of those that failed.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.counts.get()
    }

    /// Returns the result of the last refresh, or `None` if there has been none.
    pub(crate) fn last(&self) -> Option<RefreshResult> {
        self.lock().last.clone()
    }

    /// Records when the background refresh starts the next one.
    pub(crate) fn schedule(&self, at: Duration) {
        self.lock().scheduled = Some(at);
    }

    /// Returns the time until a token or the background refresh can start the next refresh, at least 1 s.
    pub(crate) fn retry_after(&self, now: Duration, cooldown: Duration) -> Duration {
        let times = self.lock();
        let cooldown_end = times.started_by_token.map_or(now, |started| started.saturating_add(cooldown));
        let next = times.scheduled.filter(|at| *at > now).map_or(cooldown_end, |at| at.min(cooldown_end));
        next.saturating_sub(now).max(Duration::from_secs(1))
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C10: a refresh can start at the end of the cooldown or at the scheduled time, whichever is earlier. A scheduled
    /// time in the past is ignored.
    #[test]
    fn retry_after_is_the_earlier_of_both() {
        let state = RefreshState::new();
        let cooldown = Duration::from_secs(30);
        let retry_after = |now| state.retry_after(Duration::from_secs(now), cooldown).as_secs();
        assert_eq!(retry_after(10), 1);
        assert!(matches!(state.join(Requester::Token, Duration::from_secs(10), cooldown), Some(Joined::Leader(..))));
        assert!(state.join(Requester::Token, Duration::from_secs(39), cooldown).is_none());
        assert!(state.join(Requester::Application, Duration::from_secs(39), cooldown).is_some());
        assert_eq!([10, 20, 39, 40, 50].map(retry_after), [30, 20, 1, 1, 1]);
        state.schedule(Duration::from_secs(20));
        assert_eq!([10, 15, 19, 20, 21].map(retry_after), [10, 5, 1, 20, 19]);
        state.schedule(Duration::from_secs(60));
        assert_eq!([10, 39, 50].map(retry_after), [30, 1, 1]);
    }
}
