//! [`SessionState`]: the session that a legacy handshake has opened.

use std::sync::{
    PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

use http::HeaderValue;
use portcullis_mcp::Revision;

use super::http_sse::SseConnection;

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
    /// The current session.
    pub(super) fn current(&self) -> Option<Session> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of the current session, if there is one.
    pub(super) fn generation(&self) -> Option<u64> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|session| session.generation)
    }

    /// Replaces the session by a new one. See [`Session`] for the parameters.
    pub(super) fn open(
        &self,
        identifier: Option<HeaderValue>,
        revision: Option<Revision>,
        connection: Option<SseConnection>,
    ) {
        let generation = self.opened.fetch_add(1, Ordering::Relaxed);
        let session = Session { identifier, revision, connection, generation };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// Forgets the session.
    pub(super) fn clear(&self) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Replaces the identifier of the session, if there is one.
    pub(super) fn set_identifier(&self, identifier: &HeaderValue) {
        if let Some(session) = &mut *self.current.write().unwrap_or_else(PoisonError::into_inner) {
            session.identifier = Some(identifier.clone());
        }
    }
}
