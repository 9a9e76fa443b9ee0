//! The sessions of an owner in other processes, which count for the owner's limit.

use std::{collections::HashSet, mem::take, sync::PoisonError};

use super::{Inner, SWEEP_BATCH, SessionStore};
use crate::{
    identifier::SessionId,
    owner::Owner,
    peer_sessions::{AnnouncedSession, short},
    scope::ScopeId,
    session::Session,
};

/// The maximum number of new sessions that wait to be announced. Further ones are announced with all others.
const MAX_WAITING: usize = 65_536;

impl SessionStore {
    /// Announces the sessions that were opened since the last call to other processes. Call this about twice a second.
    /// [`record_last_uses`](Self::record_last_uses) announces all sessions of the table.
    pub fn announce_opened(&self) {
        let opened = take(&mut *self.0.opened.lock().unwrap_or_else(PoisonError::into_inner));
        let of = |id: &SessionId| self.0.table.get(id).map(|stored| AnnouncedSession::of(&stored));
        let announced: Vec<_> = opened.iter().filter_map(of).collect();
        self.0.announce(&announced);
    }

    /// Adds sessions that processes have announced, this one or others. They count for their owners' limits for 90 s.
    pub fn import_announced(&self, announced: &[AnnouncedSession]) {
        self.0.peer_sessions.add(announced, self.0.clock.monotonic());
    }
}

impl Inner {
    /// Notes a session that other processes should count.
    pub(super) fn note_opened(&self, session: &Session) {
        if self.counts_with_peers(session) {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.len() < MAX_WAITING {
                opened.push(*session.id());
            }
        }
    }

    /// Announces all sessions of the table.
    pub(super) fn announce_all(&self) {
        if self.has_peers {
            let counted = self.table.iter().filter(|stored| self.counts_with_peers(stored));
            let announced: Vec<_> = counted.map(|stored| AnnouncedSession::of(&stored)).collect();
            self.announce(&announced);
        }
    }

    /// Returns how many sessions an owner has in other processes that are not in this table. `except` is about to be added here.
    pub(super) fn sessions_elsewhere(&self, owner: Owner<'_>, except: Option<&SessionId>) -> usize {
        if !self.has_peers || owner == Owner::Anonymous {
            return 0;
        }
        let owner = ScopeId::of_owner(owner);
        let own = self.capacity.sessions_of(owner);
        let here: HashSet<u64> = own.iter().map(|session| session.id()).chain(except).map(short).collect();
        self.peer_sessions.count(owner, self.clock.monotonic(), |session| here.contains(&session))
    }

    fn announce(&self, announced: &[AnnouncedSession]) {
        announced.chunks(SWEEP_BATCH).for_each(|announced| self.journal.announce(announced));
    }

    /// Anonymous sessions have no limit.
    fn counts_with_peers(&self, session: &Session) -> bool {
        self.has_peers && session.encoded_owner().is_some()
    }
}
