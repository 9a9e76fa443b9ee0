//! [`SessionObserver`]: observes the sessions of a store.

use crate::{end_reason::EndReason, live_session::Session};

/// Observes the sessions of a store.
pub trait SessionObserver: Send + Sync + 'static {
    /// Called once for each new session, on the thread that opened it, without a lock of the store.
    /// The session already resolves. It must not block. The default does nothing.
    fn opened(&self, session: &Session) {
        let _ = session;
    }

    /// Called when this process adopts a session: the first use of a session that another process
    /// opened, or this one before a restart. It must not block. The default does nothing.
    fn adopted(&self, session: &Session) {
        let _ = session;
    }

    /// Called when this process releases a session, which continues in other processes: only they
    /// have used it within the idle timeout. It must not block. The default does nothing.
    fn released(&self, session: &Session) {
        let _ = session;
    }

    /// Called once, for the first session whose backend identifier is too long for an identifier.
    /// Such sessions end with the process. It must not block. The default does nothing.
    fn not_sealed(&self, session: &Session) {
        let _ = session;
    }

    /// Called once for each ended session, on the thread that ended it, without a lock of the
    /// store. The session no longer resolves, and its capacity is available again. It must not
    /// block.
    fn ended(&self, session: &Session, reason: EndReason);
}

/// Ignores all sessions.
impl SessionObserver for () {
    fn ended(&self, _session: &Session, _reason: EndReason) {}
}
