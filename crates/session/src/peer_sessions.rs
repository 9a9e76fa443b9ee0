//! [`PeerSessions`]: the sessions in the tables of other processes, to count those of an owner.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use dashmap::DashMap;

use crate::{
    identifier::SessionId,
    live_session::{Session, millis},
    scope::ScopeId,
};

/// How often a process announces all sessions in its table, and records their last uses.
pub(crate) const RECORD_INTERVAL: Duration = Duration::from_secs(30);
/// How long a session counts after it was last announced: three intervals, so that a lost
/// announcement does not matter.
const LIFETIME: Duration = RECORD_INTERVAL.saturating_mul(3);

/// A session in the table of a process, which other processes count for the limit of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncedSession {
    /// The owner.
    pub owner: ScopeId,
    /// The owner's subject with all its clients; `None` without a subject.
    pub subject: Option<ScopeId>,
    /// The first half of the stable session id. It is random.
    pub session: u64,
}

impl AnnouncedSession {
    /// The length of the encoding, in bytes.
    pub const ENCODED_LENGTH: usize = 16 + 16 + 8;

    /// The encoding of a missing subject. No scope of subjects has this id: its first bit is set.
    const NO_SUBJECT: [u8; 16] = [0; 16];

    /// Returns the announcement of a session.
    pub(crate) fn of(session: &Session) -> Self {
        let subject = session.owner().subject_scope();
        Self {
            owner: session.owner_id(),
            subject,
            session: short_id(session.id()),
        }
    }

    /// Returns the encoding for a message.
    pub fn encode(&self) -> [u8; Self::ENCODED_LENGTH] {
        let mut bytes = [0; Self::ENCODED_LENGTH];
        bytes[..16].copy_from_slice(&self.owner.0);
        bytes[16..32].copy_from_slice(&self.subject.map_or(Self::NO_SUBJECT, |subject| subject.0));
        bytes[32..].copy_from_slice(&self.session.to_be_bytes());
        bytes
    }

    /// Returns the session with this encoding; `None` if the encoding is not valid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (owner, bytes) = bytes.split_first_chunk()?;
        let (subject, session) = bytes.split_first_chunk()?;
        let subject = (*subject != Self::NO_SUBJECT).then_some(ScopeId(*subject));
        Some(Self {
            owner: ScopeId(*owner),
            subject,
            session: u64::from_be_bytes(session.try_into().ok()?),
        })
    }
}

/// The sessions that were announced in the last 90 s. Bounded: further ones do not count.
pub(crate) struct PeerSessions {
    max: usize,
    /// The number of all sessions.
    len: AtomicUsize,
    /// The sessions of each owner, ordered by their short ids.
    owners: DashMap<ScopeId, Vec<PeerSession>>,
    /// The owners of each subject. An owner is added with each announcement, and removed with its
    /// last session.
    subjects: DashMap<ScopeId, BTreeSet<ScopeId>>,
}

/// A session that was announced.
struct PeerSession {
    short_id: u64,
    /// The time until which it counts, in milliseconds of the monotonic clock.
    counts_until: u64,
}

impl PeerSessions {
    /// Returns an empty table for up to `max` sessions.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            len: AtomicUsize::new(0),
            owners: DashMap::new(),
            subjects: DashMap::new(),
        }
    }

    /// Adds announced sessions. The own ones can be among them.
    pub(crate) fn add(&self, announced: &[AnnouncedSession], now: Duration) {
        let counts_until = millis(now.saturating_add(LIFETIME));
        for AnnouncedSession {
            owner,
            subject,
            session,
        } in announced
        {
            let is_full = self.len.load(Ordering::Relaxed) >= self.max;
            // A session that does not fit leaves no empty entry of its owner.
            if is_full && !self.owners.contains_key(owner) {
                continue;
            }
            let mut sessions = self.owners.entry(*owner).or_default();
            match sessions.binary_search_by_key(session, |known| known.short_id) {
                Ok(known) => sessions[known].counts_until = counts_until,
                Err(_) if is_full => {}
                Err(position) => {
                    self.len.fetch_add(1, Ordering::Relaxed);
                    sessions.insert(
                        position,
                        PeerSession {
                            short_id: *session,
                            counts_until,
                        },
                    );
                }
            }
            drop(sessions);
            if let Some(subject) = subject {
                self.subjects.entry(*subject).or_default().insert(*owner);
            }
        }
    }

    /// Removes a session that has ended.
    pub(crate) fn remove(&self, owner: ScopeId, session: &SessionId) {
        self.owners.remove_if_mut(&owner, |_, sessions| {
            if let Ok(known) =
                sessions.binary_search_by_key(&short_id(session), |known| known.short_id)
            {
                sessions.remove(known);
                self.len.fetch_sub(1, Ordering::Relaxed);
            }
            sessions.is_empty()
        });
    }

    /// Returns the number of sessions of an owner, without those whose short ids `is_excluded`
    /// returns true for.
    pub(crate) fn count(
        &self,
        owner: ScopeId,
        now: Duration,
        is_excluded: impl Fn(u64) -> bool,
    ) -> usize {
        let now = millis(now);
        let counts =
            |session: &&PeerSession| session.counts_until > now && !is_excluded(session.short_id);
        self.owners
            .get(&owner)
            .map_or(0, |sessions| sessions.iter().filter(counts).count())
    }

    /// Returns the owners of a subject that have sessions, or had some until the last
    /// [`prune`](Self::prune).
    pub(crate) fn owners_of(&self, subject: ScopeId) -> Vec<ScopeId> {
        self.subjects
            .get(&subject)
            .map(|owners| owners.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Removes the sessions that do not count any more.
    pub(crate) fn prune(&self, now: Duration) {
        if !(self.owners.is_empty() && self.subjects.is_empty()) {
            let now = millis(now);
            self.owners.retain(|_, sessions| {
                let before = sessions.len();
                sessions.retain(|session| session.counts_until > now);
                self.len
                    .fetch_sub(before - sessions.len(), Ordering::Relaxed);
                !sessions.is_empty()
            });
            self.subjects.retain(|_, owners| {
                owners.retain(|owner| self.owners.contains_key(owner));
                !owners.is_empty()
            });
        }
    }
}

/// Returns the first half of a session id, which is random and therefore suffices to tell sessions
/// apart.
pub(crate) fn short_id(session: &SessionId) -> u64 {
    session
        .first_chunk()
        .map_or(0, |half| u64::from_be_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(owner: u8, session: u64) -> AnnouncedSession {
        AnnouncedSession {
            owner: ScopeId([owner; 16]),
            subject: Some(ScopeId([0x80; 16])),
            session,
        }
    }

    /// E13: a session counts once, until it ends or is not announced any more, and the number is
    /// bounded.
    #[test]
    fn announced_sessions_count_for_their_owner() {
        let sessions = PeerSessions::new(3);
        let now = Duration::from_secs(1000);
        let count = |owner, now| sessions.count(ScopeId([owner; 16]), now, |session| session == 9);
        sessions.add(
            &[
                announced(1, 7),
                announced(1, 5),
                announced(1, 9),
                announced(1, 5),
                announced(2, 8),
            ],
            now,
        );
        assert_eq!(count(1, now), 2, "one of the three is excluded");
        assert_eq!(count(2, now), 0, "the fourth one does not fit");
        assert_eq!(sessions.owners.len(), 1);

        let mut id = [0; 16];
        id[7] = 7;
        sessions.remove(ScopeId([1; 16]), &id);
        sessions.add(&[announced(1, 5)], now + LIFETIME / 2);
        assert_eq!(count(1, now + LIFETIME), 1);

        sessions.prune(now + LIFETIME);
        assert_eq!(sessions.len.load(Ordering::Relaxed), 1);
        assert_eq!(count(1, now + LIFETIME * 2), 0);
        sessions.prune(now + LIFETIME * 2);
        assert!(sessions.owners.is_empty());
        assert!(sessions.subjects.is_empty());
        assert_eq!(sessions.len.load(Ordering::Relaxed), 0);
    }

    /// E13: what one process announces, another one reads.
    #[test]
    fn announcements_return_from_their_encoding() {
        let announced = announced(3, u64::MAX - 7);
        let without_subject = AnnouncedSession {
            subject: None,
            ..announced
        };
        assert_eq!(
            AnnouncedSession::decode(&without_subject.encode()),
            Some(without_subject)
        );
        assert_eq!(
            AnnouncedSession::decode(&announced.encode()),
            Some(announced)
        );
        assert_eq!(AnnouncedSession::decode(&announced.encode()[1..]), None);
        assert_eq!(
            AnnouncedSession::decode(&[0; AnnouncedSession::ENCODED_LENGTH + 1]),
            None
        );
    }
}
