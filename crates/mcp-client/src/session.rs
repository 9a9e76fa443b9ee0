//! [`SessionState`]: the session that a legacy handshake has opened.

use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use parking_lot::RwLock;
use portcullis_mcp::Revision;

use crate::http_sse::SseConnection;

/// The current session, if there is one.
#[derive(Default)]
pub(super) struct SessionState {
    current: RwLock<Option<Session>>,
    /// The number of sessions so far.
    opened: AtomicU64,
}

/// The result of a legacy handshake.
#[derive(Clone)]
pub(super) struct Session {
    /// `None` if the server has no sessions.
    pub(super) identifier: Option<HeaderValue>,
    /// `None` for 2024-11-05, which has no header for it.
    pub(super) revision: Option<Revision>,
    /// The connection, if the server uses HTTP with SSE.
    pub(super) connection: Option<SseConnection>,
    /// The number of the session. Unlike the identifier, it does not change during a session.
    pub(super) generation: u64,
}

impl SessionState {
    pub(super) fn current(&self) -> Option<Session> {
        self.current.read().clone()
    }

    /// The number of the current session, if there is one.
    pub(super) fn generation(&self) -> Option<u64> {
        self.current
            .read()
            .as_ref()
            .map(|session| session.generation)
    }

    /// Replaces the session by a new one. See [`Session`] for the parameters.
    pub(super) fn open(
        &self,
        identifier: Option<HeaderValue>,
        revision: Option<Revision>,
        connection: Option<SseConnection>,
    ) {
        let generation = self.opened.fetch_add(1, Ordering::Relaxed);
        let session = Session {
            identifier,
            revision,
            connection,
            generation,
        };
        *self.current.write() = Some(session);
    }

    /// Forgets the session.
    pub(super) fn clear(&self) {
        *self.current.write() = None;
    }

    /// Replaces the identifier of the session with this number, if it is the current one and has an
    /// identifier.
    pub(super) fn set_identifier(&self, generation: u64, identifier: &HeaderValue) {
        if let Some(session) = &mut *self.current.write()
            && session.generation == generation
            && session.identifier.is_some()
        {
            session.identifier = Some(identifier.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A late response of an earlier session does not change the current one.
    #[test]
    fn a_response_replaces_the_identifier_of_its_own_session() {
        let sessions = SessionState::default();
        let identifier = || sessions.current().unwrap().identifier;
        sessions.open(Some(HeaderValue::from_static("s-1")), None, None);
        let first = sessions.generation().unwrap();
        sessions.set_identifier(first, &HeaderValue::from_static("s-2"));
        assert_eq!(identifier().unwrap(), "s-2");
        sessions.open(Some(HeaderValue::from_static("t-1")), None, None);
        sessions.set_identifier(first, &HeaderValue::from_static("s-3"));
        assert_eq!(identifier().unwrap(), "t-1");
        sessions.open(None, None, None);
        sessions.set_identifier(
            sessions.generation().unwrap(),
            &HeaderValue::from_static("u-1"),
        );
        assert_eq!(identifier(), None, "the server has no sessions");
    }
}
