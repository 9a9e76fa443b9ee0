use std::{fmt, ops::Deref, sync::Arc};

use crate::{Identifier, Resolved, Session, SessionStore};

/// A use of a session that takes time, such as a request or a stream. Made by [`SessionStore::hold`].
///
/// While it lives, the session does not go idle; its idle time starts anew when it is dropped. It does not keep a
/// session from ending in any other way.
#[must_use = "dropping it ends the use"]
pub struct InUse {
    store: SessionStore,
    session: Arc<Session>,
    /// Which of the session's identifiers the use came with.
    number: u32,
    authorization: u64,
}

impl InUse {
    pub(crate) fn new(store: SessionStore, resolved: Resolved, authorization: u64) -> Self {
        let Resolved { session, number } = resolved;
        session.take_into_use();
        Self { store, session, number, authorization }
    }

    /// The identifier that the client has to be told with the answer, because it came with an older one; nothing when
    /// its own is the newest.
    ///
    /// A new one is made when this use has other scopes than the newest identifier was made for, at most once a minute,
    /// and not before the newest has been used. The older one goes on resolving until 5 min after the new one's first
    /// use, so that a client that does not learn the new one is not cut off.
    pub fn renewed(&self) -> Option<Identifier> {
        self.store.renewed(&self.session, self.number, self.authorization)
    }
}

impl Deref for InUse {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        // In this order: unused for long and not in use must never be seen together.
        self.store.touch(&self.session);
        self.session.leave_use();
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InUse").field(&self.session).finish()
    }
}
