use std::{fmt, ops::Deref, sync::Arc};

use crate::Session;

/// An active session, found by one of its identifiers. Made by [`SessionStore::resolve`](crate::SessionStore::resolve).
#[derive(Clone)]
pub struct Resolved {
    pub(crate) session: Arc<Session>,
    /// Which of the session's identifiers it was found by: 0 the first, 1 its successor, and so on.
    pub(crate) number: u32,
}

impl Resolved {
    /// The session itself.
    pub fn into_session(self) -> Arc<Session> {
        self.session
    }
}

impl Deref for Resolved {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resolved").field(&self.session).finish()
    }
}
