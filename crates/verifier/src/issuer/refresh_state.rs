//! [`RefreshState`]: whether a refresh of an issuer may start now, when the next one may, and how
//! the last one ended.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::{
    call_counter::{CallCounter, CallCounts},
    refresh_error::RefreshError,
};
use crate::single_flight::{Joined, SingleFlight};

/// The minimum `retry_after`. A refresh that may start now takes a moment, too.
const MIN_RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) type RefreshResult = Result<(), RefreshError>;

/// Limits the refreshes of one issuer: one at a time and, of those that tokens cause, one per
/// cooldown.
///
/// It neither fetches nor waits. All times are those of the monotonic clock.
pub(crate) struct RefreshState {
    running: Arc<SingleFlight<(), RefreshResult>>,
    history: Mutex<History>,
    counter: CallCounter,
}

/// When refreshes were started and are scheduled, and how the last one ended.
#[derive(Default)]
struct History {
    /// When a token last started a refresh. `None` if none has.
    started_by_token: Option<Duration>,
    /// When the background refresh starts the next one. `None` if there is no background refresh.
    scheduled: Option<Duration>,
    /// How the last refresh ended. `None` before the first one has.
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
    /// Creates the state of an issuer without a refresh so far.
    pub(crate) fn new() -> Self {
        Self {
            running: SingleFlight::new(1),
            history: Mutex::default(),
            counter: CallCounter::default(),
        }
    }

    /// Joins the running refresh, or becomes the leader of a new one, which must start it. Returns
    /// `None` if a token requests a new one less than `cooldown` after the last one that a token
    /// started.
    pub(crate) fn join(
        &self,
        requester: Requester,
        now: Duration,
        cooldown: Duration,
    ) -> Option<Joined<(), RefreshResult>> {
        let mut history = self.history.lock();
        let joined = self.running.join(());
        if requester == Requester::Token && matches!(joined, Joined::Leader(..)) {
            if history
                .started_by_token
                .is_some_and(|started| now.saturating_sub(started) < cooldown)
            {
                return None;
            }
            history.started_by_token = Some(now);
        }
        Some(joined)
    }

    /// Records the result of a refresh that has ended.
    pub(crate) fn record(&self, result: RefreshResult) {
        self.counter.add(result.is_ok());
        self.history.lock().last = Some(result);
    }

    /// Returns the number of refreshes, and of those that failed.
    pub(crate) fn counts(&self) -> CallCounts {
        self.counter.get()
    }

    /// Returns the result of the last refresh, or `None` if there has been none.
    pub(crate) fn last(&self) -> Option<RefreshResult> {
        self.history.lock().last.clone()
    }

    /// Records when the background refresh starts the next one.
    pub(crate) fn schedule(&self, at: Duration) {
        self.history.lock().scheduled = Some(at);
    }

    /// Returns the time until a token or the background refresh can start the next refresh,
    /// whichever is earlier; at least 1 s. A scheduled time in the past is ignored, because that
    /// refresh is running or has ended.
    pub(crate) fn retry_after(&self, now: Duration, cooldown: Duration) -> Duration {
        let history = self.history.lock();
        let cooldown_end = history
            .started_by_token
            .map_or(now, |started| started.saturating_add(cooldown));
        let scheduled = history.scheduled.filter(|at| *at > now);
        let next = scheduled.map_or(cooldown_end, |at| at.min(cooldown_end));
        next.saturating_sub(now).max(MIN_RETRY_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOLDOWN: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Starts a refresh and ends it at once. Returns whether it was started.
    fn refresh(state: &RefreshState, requester: Requester, now: Duration) -> bool {
        match state.join(requester, now, COOLDOWN) {
            Some(Joined::Leader(operation, _)) => {
                state.record(Ok(()));
                operation.complete(Ok(()));
                true
            }
            _ => false,
        }
    }

    /// C10: tokens start one refresh per cooldown. The application is not limited and does not
    /// start a cooldown.
    #[test]
    fn tokens_have_a_cooldown() {
        let state = RefreshState::new();
        for (second, requester, starts) in [
            (10, Requester::Application, true),
            (10, Requester::Token, true),
            (39, Requester::Token, false),
            (39, Requester::Application, true),
            (40, Requester::Token, true),
            (69, Requester::Token, false),
        ] {
            assert_eq!(
                refresh(&state, requester, at(second)),
                starts,
                "{second} s, {requester:?}"
            );
        }
        assert_eq!(state.counts(), CallCounts { all: 4, failed: 0 });
    }

    /// C10: a token joins a running refresh, also during the cooldown.
    #[test]
    fn a_running_refresh_is_joined() {
        let state = RefreshState::new();
        let leader = state.join(Requester::Token, at(10), COOLDOWN);
        assert!(matches!(leader, Some(Joined::Leader(..))));
        assert!(matches!(
            state.join(Requester::Token, at(11), COOLDOWN),
            Some(Joined::Follower(_))
        ));
        drop(leader);
        assert!(state.join(Requester::Token, at(12), COOLDOWN).is_none());
    }

    /// C10: a refresh can start at the end of the cooldown or at the scheduled time, whichever is
    /// earlier. A scheduled time in the past is ignored.
    #[test]
    fn retry_after_is_the_earlier_of_both() {
        let state = RefreshState::new();
        let retry_after = |now| state.retry_after(at(now), COOLDOWN).as_secs();
        assert_eq!(retry_after(10), 1);
        assert!(refresh(&state, Requester::Token, at(10)));
        assert_eq!([10, 20, 39, 40, 50].map(retry_after), [30, 20, 1, 1, 1]);
        state.schedule(at(20));
        assert_eq!([10, 15, 19, 20, 21].map(retry_after), [10, 5, 1, 20, 19]);
        state.schedule(at(60));
        assert_eq!([10, 39, 50].map(retry_after), [30, 1, 1]);
    }

    /// The last result is kept, and failures are counted.
    #[test]
    fn results_are_recorded() {
        let state = RefreshState::new();
        assert!(state.last().is_none());
        state.record(Err(RefreshError::Timeout));
        assert!(matches!(state.last(), Some(Err(RefreshError::Timeout))));
        state.record(Ok(()));
        assert!(matches!(state.last(), Some(Ok(()))));
        assert_eq!(state.counts(), CallCounts { all: 2, failed: 1 });
    }
}
