//! [`SessionPage`]: the sessions in the table, listed in pages.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::SessionStore;
use crate::live_session::{LogHash, Session, millis};

/// A session in the table, at the time of the listing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListedSession {
    /// The session.
    pub session: Arc<Session>,
    /// The time since the session was created.
    pub age: Duration,
    /// The time since this process last used the session; zero while it is in use.
    pub unused_for: Duration,
    /// Whether the session is in use.
    pub is_in_use: bool,
}

/// A page of a list of sessions, from [`SessionStore::list`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions in the order of their [log hashes](Session::log_hash).
    pub sessions: Vec<ListedSession>,
    /// Whether more sessions follow.
    pub has_more: bool,
}

impl SessionStore {
    /// Returns up to `limit` sessions in the table that satisfy `is_wanted`, in the order of their
    /// log hashes, beginning after the hash `after`.
    ///
    /// Each call examines the whole table, and keeps at most `limit` sessions in memory. A session
    /// that exists while all pages are read is on exactly one of them.
    pub fn list(
        &self,
        is_wanted: impl Fn(&Session) -> bool,
        after: Option<LogHash>,
        limit: usize,
    ) -> SessionPage {
        let mut found = BTreeMap::new();
        let mut has_more = false;
        for stored in &self.0.table {
            let hash = stored.log_hash();
            if after.is_some_and(|after| hash <= after) || !is_wanted(&stored) {
                continue;
            }
            found.insert(hash, Arc::clone(&stored));
            if found.len() > limit {
                found.pop_last();
                has_more = true;
            }
        }
        let sessions = found
            .into_values()
            .filter_map(|session| self.listed(session))
            .collect();
        SessionPage { sessions, has_more }
    }

    /// Returns the session in the table with this log hash. Examines the whole table.
    pub fn find(&self, hash: LogHash) -> Option<Arc<Session>> {
        self.0
            .table
            .iter()
            .find(|stored| stored.log_hash() == hash)
            .map(|stored| Arc::clone(&stored))
    }

    /// Returns the entry of a session; `None` if it has ended.
    fn listed(&self, session: Arc<Session>) -> Option<ListedSession> {
        let now = self.0.clock.read();
        let last_used = session.last_used()?;
        let is_in_use = session.is_in_use();
        let unused_for = if is_in_use {
            0
        } else {
            millis(now.monotonic).saturating_sub(last_used)
        };
        let age = now.unix.saturating_duration_since(session.created());
        Some(ListedSession {
            session,
            age,
            unused_for: Duration::from_millis(unused_for),
            is_in_use,
        })
    }
}
