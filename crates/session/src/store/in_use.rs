//! [`InUse`]: a session in use by a request or a stream.

use std::{fmt, ops::Deref, sync::Arc};

use super::SessionStore;
use crate::{
    identifier::{Generation, Identifier},
    live_session::Session,
};

/// A session in use by a request or a stream. Created by [`SessionStore::resolve`] and
/// [`Reservation::open`](crate::Reservation::open).
///
/// A session in use does not end by idle time or eviction, but can end for any other reason. Its
/// idle time starts when the last `InUse` is dropped.
#[must_use = "dropping it ends the use"]
pub struct InUse {
    store: SessionStore,
    session: Arc<Session>,
    /// The identifier with which the use began; `None` if it is the session's
    /// [`first`](Session::first).
    generation: Option<Arc<Generation>>,
    /// The hash of the scopes of this use.
    fingerprint: u64,
}

impl InUse {
    /// The caller must have begun the use, which ends when the value is dropped.
    pub(super) fn new(
        store: SessionStore,
        session: Arc<Session>,
        generation: Option<Arc<Generation>>,
        fingerprint: u64,
    ) -> Self {
        Self {
            store,
            session,
            generation,
            fingerprint,
        }
    }

    /// Returns the session, which can end as soon as the use is dropped.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Returns the identifier that the response must give to the client; `None` if the client has
    /// the newest one.
    ///
    /// The session gets a new identifier if the scopes of this use differ from those of the newest
    /// identifier: at most once a minute, and only after the newest identifier has been used. The
    /// previous identifier resolves until 5 min after the first use of the new one, so a client
    /// that misses the response keeps its session.
    pub fn rotated_identifier(&self) -> Option<Identifier> {
        let generation = self
            .generation
            .as_deref()
            .unwrap_or_else(|| self.session.first());
        self.store
            .rotated_identifier(&self.session, generation, self.fingerprint)
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
        self.store.end_use(&self.session);
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InUse").field(&self.session).finish()
    }
}
