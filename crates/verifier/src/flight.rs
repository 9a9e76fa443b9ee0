use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::RefreshError;

/// How a refresh ended.
pub(crate) type Outcome = Result<(), RefreshError>;
/// Where everybody who waits for a refresh reads how it ended.
pub(crate) type Landed = watch::Receiver<Option<Outcome>>;

/// Sees to it that an issuer is asked by one refresh at a time, and by tokens no more than once a cooldown.
///
/// The lock is held for a few assignments, never across a fetch.
#[derive(Default)]
pub(crate) struct Flight(Mutex<State>);

#[derive(Default)]
struct State {
    under_way: Option<Landed>,
    /// When a token last started a refresh.
    asked: Option<Duration>,
    /// When the background refresh starts the next one.
    scheduled: Option<Duration>,
    last: Option<Outcome>,
}

/// Who wants fresh keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// A token, which anybody may have made up: the cooldown applies.
    Token,
    /// The background refresh or the owner of the process.
    Us,
}

/// What became of the wish.
pub(crate) enum Boarding {
    /// A refresh is to be started: the sender is for its outcome.
    Start(watch::Sender<Option<Outcome>>, Landed),
    /// One is under way already.
    Join(Landed),
    /// A token asked a short while ago.
    Cooling,
}

impl Flight {
    pub(crate) fn board(&self, asked_by: AskedBy, now: Duration, cooldown: Duration) -> Boarding {
        let mut state = self.lock();
        if let Some(landed) = &state.under_way {
            return Boarding::Join(landed.clone());
        }
        if asked_by == AskedBy::Token {
            if state.asked.is_some_and(|asked| now.saturating_sub(asked) < cooldown) {
                return Boarding::Cooling;
            }
            state.asked = Some(now);
        }
        let (sender, landed) = watch::channel(None);
        state.under_way = Some(landed.clone());
        Boarding::Start(sender, landed)
    }

    pub(crate) fn land(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.under_way = None;
        state.last = Some(outcome);
    }

    /// How the last refresh ended; none when there has been none.
    pub(crate) fn last(&self) -> Option<Outcome> {
        self.lock().last.clone()
    }

    pub(crate) fn schedule(&self, at: Duration) {
        self.lock().scheduled = Some(at);
    }

    /// How long until the issuer may be asked again, by a token or by the background refresh; 1 s at least.
    pub(crate) fn retry_after(&self, now: Duration, cooldown: Duration) -> Duration {
        let state = self.lock();
        let cooled = state.asked.map_or(now, |asked| asked.saturating_add(cooldown));
        let next = state.scheduled.filter(|at| *at > now).map_or(cooled, |at| at.min(cooled));
        next.saturating_sub(now).max(Duration::from_secs(1))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C10: the issuer may be asked again when the cooldown ends, or sooner, when the background refresh is to ask it;
    /// a refresh that was planned for a moment that has come says nothing of the next.
    #[test]
    fn coming_back_is_due_at_the_sooner_of_both() {
        let flight = Flight::default();
        let cooldown = Duration::from_secs(30);
        let retry_after = |now| flight.retry_after(Duration::from_secs(now), cooldown).as_secs();
        assert_eq!(retry_after(10), 1);
        assert!(matches!(flight.board(AskedBy::Token, Duration::from_secs(10), cooldown), Boarding::Start(..)));
        assert_eq!([10, 20, 39, 40, 50].map(retry_after), [30, 20, 1, 1, 1]);
        flight.schedule(Duration::from_secs(20));
        assert_eq!([10, 15, 19, 20, 21].map(retry_after), [10, 5, 1, 20, 19]);
        flight.schedule(Duration::from_secs(60));
        assert_eq!([10, 39, 50].map(retry_after), [30, 1, 1]);
    }
}
