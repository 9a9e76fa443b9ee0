use std::{fmt, ops::Deref, sync::Arc};

use crate::{Session, SessionStore};

/// A use of a session that takes time, such as a request or a stream. Made by [`SessionStore::hold`].
///
/// While it lives, the session does not go idle; its idle time starts anew when it is dropped. It does not keep a
/// session from ending in any other way.
#[must_use = "dropping it ends the use"]
pub struct InUse {
    store: SessionStore,
    session: Arc<Session>,
}

impl InUse {
    pub(crate) fn new(store: SessionStore, session: Arc<Session>) -> Self {
        session.take_into_use();
        Self { store, session }
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
