//! [`Retention`]: how long records matter.

use std::time::Duration;

use portcullis_metadata::UnixTime;
use portcullis_session::SessionStore;

/// How long records matter: the settings of the session store.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// The maximum age of a session.
    pub lifetime: Duration,
    /// The maximum time without use.
    pub idle_timeout: Duration,
}

impl Retention {
    /// Returns the creation time of the oldest sessions whose ends matter.
    pub(crate) fn oldest_end(self, now: UnixTime) -> UnixTime {
        now.saturating_sub(self.lifetime)
    }

    /// Returns the latest creation time of sessions whose ends matter. A later floor counts as one
    /// at this time.
    pub(crate) fn latest_end(now: UnixTime) -> UnixTime {
        now.saturating_add(SessionStore::MAX_AHEAD)
    }

    /// Returns the time of the oldest uses that matter.
    pub(crate) fn oldest_use(self, now: UnixTime) -> UnixTime {
        now.saturating_sub(self.idle_timeout)
    }
}
