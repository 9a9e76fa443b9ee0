use std::{fmt, ops::Deref, sync::Arc};

use crate::{Identifier, Session, SessionStore};

/// A session in use, by a request or a stream. Made by [`SessionStore::resolve`] and [`Reservation::open`].
///
/// While it lives, the session neither goes idle nor is evicted; its idle time starts when the last use is dropped. It
/// does not keep the session from ending in any other way.
///
/// [`Reservation::open`]: crate::Reservation::open
#[must_use = "dropping it ends the use"]
pub struct InUse {
    store: SessionStore,
    session: Arc<Session>,
    /// Which of the session's identifiers the use came with: 0 the first, 1 its successor, and so on.
    number: u32,
    authorization: u64,
}

impl InUse {
    /// `session` must have been taken into use for it.
    pub(crate) fn new(store: SessionStore, session: Arc<Session>, number: u32, authorization: u64) -> Self {
        Self { store, session, number, authorization }
    }

    /// The session itself. It may end as soon as the use is dropped.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The identifier that the client has to be told with the answer, because it came with an older one; nothing when
    /// its own is the newest.
    ///
    /// A new one is made when this use has other scopes than the newest identifier was made for, at most once a minute,
    /// and not before the newest has been used. The older one goes on resolving until 5 min after the new one's first
    /// use, so that a client that does not learn the new one is not cut off.
    pub fn rotated_identifier(&self) -> Option<Identifier> {
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
        self.store.leave_use(&self.session);
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InUse").field(&self.session).finish()
    }
}
