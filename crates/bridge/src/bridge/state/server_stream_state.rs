//! [`ServerStreamState`]: whether the server's own stream is open in the current session.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use crate::bridge::state::session::Session;

/// The state of the stream for the server's own messages in a legacy session.
#[derive(Default)]
pub(crate) struct ServerStreamState {
    state: Mutex<Option<(u64, State)>>,
    /// The number of sessions in a row that were opened without a request of the client.
    unsolicited: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// It ended because the token was rejected. It can be opened again.
    Stopped,
    /// The server does not offer it.
    NotOffered,
    /// The server has lost the session.
    Lost,
}

/// The maximum number of sessions in a row that are opened without a request of the client.
pub(crate) const MAX_UNSOLICITED_RENEWALS: u32 = 8;

impl ServerStreamState {
    /// Counts a session that is opened without a request of the client. Returns the count before.
    pub(crate) fn count_unsolicited_renewal(&self) -> u32 {
        self.unsolicited.fetch_add(1, Ordering::Relaxed)
    }

    /// Resets the count, because the client has sent a request.
    pub(crate) fn reset_unsolicited_renewals(&self) {
        self.unsolicited.store(0, Ordering::Relaxed);
    }

    /// Marks the stream as open in a session. Returns false if its state in this session is already known.
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
