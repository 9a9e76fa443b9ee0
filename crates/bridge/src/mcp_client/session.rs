//! [`SessionState`]: the session that a legacy handshake has opened.

use std::sync::{PoisonError, RwLock};

use http::HeaderValue;
use portcullis_mcp::Revision;

use super::http_sse::SseConnection;

/// The current session, if there is one.
#[derive(Default)]
pub(super) struct SessionState(RwLock<Option<Session>>);

/// The result of a legacy handshake.
#[derive(Clone)]
pub(super) struct Session {
    /// `None` if the server has no sessions.
    pub(super) identifier: Option<HeaderValue>,
    /// `None` for 2024-11-05, which has no header for it.
    pub(super) revision: Option<Revision>,
    /// The connection, if the server uses HTTP with SSE.
    pub(super) connection: Option<SseConnection>,
}

impl SessionState {
    /// The current session.
    pub(super) fn current(&self) -> Option<Session> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the session.
    pub(super) fn set(&self, session: Session) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// Forgets the session.
    pub(super) fn clear(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Replaces the identifier of the session, if there is one.
    pub(super) fn set_identifier(&self, identifier: &HeaderValue) {
        if let Some(session) = &mut *self.0.write().unwrap_or_else(PoisonError::into_inner) {
            session.identifier = Some(identifier.clone());
        }
    }
}
