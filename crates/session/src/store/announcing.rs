//! The limit of an owner over several processes: announces the sessions of this process, and counts
//! those of the others.
//!
//! A process announces a new session within [`ANNOUNCE_INTERVAL`](SessionStore::ANNOUNCE_INTERVAL),
//! and all sessions in its table with each [`record_last_uses`](SessionStore::record_last_uses).
//! The journal carries the announcements to the other processes. When an owner opens a session,
//! those that only other processes have reduce the owner's limit in this one.

use std::{collections::HashSet, time::Duration};

use super::{Inner, SessionStore, capacity::Elsewhere};
use crate::{
    identifier::SessionId,
    journal::JOURNAL_BATCH,
    live_session::Session,
    owner::Owner,
    peer_sessions::{AnnouncedSession, short_id},
    scope::ScopeId,
};

impl SessionStore {
    /// How often [`announce_opened`](Self::announce_opened) should be called: 0.5 s. Sessions that
    /// an owner opens at several processes within this time do not count for each other.
    pub const ANNOUNCE_INTERVAL: Duration = Duration::from_millis(500);

    /// Announces to other processes the sessions that were opened since the last call and have not
    /// ended. Call this every [`ANNOUNCE_INTERVAL`](Self::ANNOUNCE_INTERVAL). Sessions of
    /// [`Owner::Anonymous`], which has no limit, are not announced.
    pub fn announce_opened(&self) {
        let in_table = |id: &SessionId| {
            self.0
                .table
                .get(id)
                .map(|stored| AnnouncedSession::of(&stored))
        };
        let announced: Vec<_> = self.0.opened.take().iter().filter_map(in_table).collect();
        self.0.announce(&announced);
    }

    /// Adds sessions that processes have announced, this one or others. They count for their
    /// owners' limits for 90 s, or until they end. At most twice
    /// [`max_total`](crate::SessionSettings::max_total) count.
    pub fn import_announced(&self, announced: &[AnnouncedSession]) {
        self.0
            .peer_sessions
            .add(announced, self.0.clock.monotonic());
    }
}

impl Inner {
    /// Has the next [`SessionStore::announce_opened`] announce a new session, if other processes
    /// count it.
    pub(super) fn announce_later(&self, session: &Session) {
        if self.counts_elsewhere(session) {
            self.opened.add(*session.id());
        }
    }

    /// Announces all sessions in the table.
    pub(super) fn announce_all(&self) {
        if self.has_peers {
            let counted = self
                .table
                .iter()
                .filter(|stored| self.counts_elsewhere(stored));
            let announced: Vec<_> = counted
                .map(|stored| AnnouncedSession::of(&stored))
                .collect();
            self.announce(&announced);
        }
    }

    /// Returns how many sessions of an owner, and of its subject, only other processes have. A
    /// session that this process is about to add to its table, `adopting`, does not count.
    pub(super) fn sessions_elsewhere(
        &self,
        owner: Owner<'_>,
        adopting: Option<&SessionId>,
    ) -> Elsewhere {
        if !self.has_peers || owner == Owner::Anonymous {
            return Elsewhere::default();
        }
        let of_owner = self.sessions_of_owner_elsewhere(ScopeId::of_owner(owner), adopting);
        let owners = owner
            .subject_scope()
            .map(|subject| self.peer_sessions.owners_of(subject))
            .unwrap_or_default();
        let of_subject = owners
            .into_iter()
            .map(|owner| self.sessions_of_owner_elsewhere(owner, adopting))
            .sum();
        Elsewhere {
            of_owner,
            of_subject,
        }
    }

    fn sessions_of_owner_elsewhere(&self, owner: ScopeId, adopting: Option<&SessionId>) -> usize {
        let own = self.capacity.sessions_of(owner);
        let here: HashSet<u64> = own
            .iter()
            .map(|session| session.id())
            .chain(adopting)
            .map(short_id)
            .collect();
        self.peer_sessions
            .count(owner, self.clock.monotonic(), |session| {
                here.contains(&session)
            })
    }

    fn announce(&self, announced: &[AnnouncedSession]) {
        announced
            .chunks(JOURNAL_BATCH)
            .for_each(|announced| self.journal.announce(announced));
    }

    /// Returns whether other processes count a session for the limit of its owner. Anonymous
    /// sessions have no limit.
    fn counts_elsewhere(&self, session: &Session) -> bool {
        self.has_peers && session.encoded_owner().is_some()
    }
}
