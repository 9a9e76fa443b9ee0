//! [`ServerStreamState`]: whether the server's own stream is open in the current session.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use crate::bridge::state::session::Session;

/// How the server's messages of its own accord are heard in a legacy session.
#[derive(Default)]
pub(crate) struct ServerStreamState {
    state: Mutex<Option<(u64, State)>>,
    /// How often in a row a session was to be opened although the client did not ask anything.
    unsolicited: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// It ended for a reason that may pass: a token that was refused.
    Stopped,
    /// The server has none.
    NotOffered,
    /// The server does not know the session any more.
    Lost,
}

/// How often a session is opened for a client that does not ask anything, one time after the other.
pub(crate) const MAX_UNSOLICITED_RENEWALS: u32 = 8;

impl ServerStreamState {
    /// Counts a session that is opened without a request of the client. Returns the count before.
    pub(crate) fn count_unsolicited_renewal(&self) -> u32 {
        self.unsolicited.fetch_add(1, Ordering::Relaxed)
    }

    /// The client asks, and gets answers.
    pub(crate) fn reset_unsolicited_renewals(&self) {
        self.unsolicited.store(0, Ordering::Relaxed);
    }

    /// Takes note of how it is in a session, where that is not known. False when it is.
    pub(crate) fn begins(&self, session: &Session) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stands =
            matches!(*state, Some((generation, now)) if generation == session.generation && now != State::Stopped);
        if !stands {
            *state = Some((session.generation, State::Open));
        }
        !stands
    }

    pub(crate) fn ended(&self, session: &Session, how: State) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, Some((generation, _)) if generation == session.generation) {
            *state = Some((session.generation, how));
        }
    }
}
