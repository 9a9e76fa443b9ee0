//! [`ServerStreamState`]: whether the server's own stream is open in the current session.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::session::Session;

/// The state of the stream for the server's own messages in a legacy session.
#[derive(Default)]
pub(crate) struct ServerStreamState {
    /// `None` until the stream was opened in a session.
    latest: Mutex<Option<Latest>>,
    /// The number of sessions in a row that were opened without a request of the client.
    unsolicited: AtomicU32,
}

/// The stream of the session in which it was opened last.
struct Latest {
    /// The generation of the session.
    generation: u64,
    /// `None` while the stream is open.
    end: Option<StreamEnd>,
}

/// Why the server's stream has ended in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The token was rejected. The stream can be opened again.
    TokenRejected,
    /// The server does not offer it.
    NotOffered,
    /// The server has lost the session.
    SessionLost,
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

    /// Records that the stream of a session is being opened. Returns false if it must not be: it is
    /// open in this session, or has ended there for good.
    pub(crate) fn begin(&self, session: &Session) -> bool {
        let mut latest = self.latest.lock();
        let generation = session.generation;
        let can_begin = latest.as_ref().is_none_or(|latest| {
            latest.generation != generation || latest.end == Some(StreamEnd::TokenRejected)
        });
        if can_begin {
            *latest = Some(Latest {
                generation,
                end: None,
            });
        }
        can_begin
    }

    /// Records that the stream of a session has ended, unless the stream of another session was
    /// opened since.
    pub(crate) fn end(&self, session: &Session, reason: StreamEnd) {
        if let Some(latest) = self
            .latest
            .lock()
            .as_mut()
            .filter(|latest| latest.generation == session.generation)
        {
            latest.end = Some(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_mcp::header;

    use super::*;
    use crate::state::session::Sessions;

    fn two_sessions() -> [Session; 2] {
        let sessions = Sessions::new(header::SESSION);
        [(); 2].map(|()| {
            sessions.open(None, None, None);
            sessions.current().unwrap()
        })
    }

    #[test]
    fn a_stream_begins_once_in_each_session() {
        let ([first, second], state) = (two_sessions(), ServerStreamState::default());
        assert!(state.begin(&first));
        assert!(!state.begin(&first));
        assert!(state.begin(&second));
        assert!(!state.begin(&second));
    }

    #[test]
    fn only_a_stream_with_a_rejected_token_begins_again() {
        for (end, expected) in [
            (StreamEnd::TokenRejected, true),
            (StreamEnd::NotOffered, false),
            (StreamEnd::SessionLost, false),
        ] {
            let ([session, _], state) = (two_sessions(), ServerStreamState::default());
            state.begin(&session);
            state.end(&session, end);
            assert_eq!(state.begin(&session), expected, "{end:?}");
        }
    }

    #[test]
    fn the_end_of_an_earlier_stream_does_not_affect_a_later_one() {
        let ([first, second], state) = (two_sessions(), ServerStreamState::default());
        state.begin(&first);
        state.begin(&second);
        state.end(&first, StreamEnd::TokenRejected);
        assert!(!state.begin(&second));
    }

    #[test]
    fn renewals_in_a_row_are_counted() {
        let state = ServerStreamState::default();
        assert_eq!(
            [
                state.count_unsolicited_renewal(),
                state.count_unsolicited_renewal()
            ],
            [0, 1]
        );
        state.reset_unsolicited_renewals();
        assert_eq!(state.count_unsolicited_renewal(), 0);
    }
}
