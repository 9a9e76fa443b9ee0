//! The journal: ends and last uses of sessions, for other processes and restarts.

mod extent;
mod ticket;

use std::time::Duration;

use portcullis_metadata::UnixTime;

pub use self::{
    extent::EndExtent,
    ticket::{EndConfirmation, EndTicket, NotRecorded},
};
use crate::{identifier::SessionId, peer_sessions::AnnouncedSession, scope::ScopeId};

/// The maximum number of sessions in one call of [`SessionJournal::record_last_uses`] or
/// [`SessionJournal::announce`].
pub(crate) const JOURNAL_BATCH: usize = 1024;

/// Keeps ends and last uses outside the process, for example in a file or in Redis.
///
/// A store calls the methods on the threads of requests, without a lock. They must not block. Pass
/// the records of other processes, and those from before a restart, to
/// [`SessionStore::import`](crate::SessionStore::import) and
/// [`SessionStore::import_last_uses`](crate::SessionStore::import_last_uses).
pub trait SessionJournal: Send + Sync + 'static {
    /// Records an end. The ticket completes when the end is durable, or known to the other
    /// processes. An end can be recorded several times, and in any order.
    fn record(&self, end: &SessionEnd) -> EndTicket;

    /// Records when sessions were last used. A later use replaces an earlier one. The store calls
    /// this only in [`SessionStore::record_last_uses`](crate::SessionStore::record_last_uses), with
    /// at most 1,024 sessions at a time.
    fn record_last_uses(&self, uses: &[LastUse]);

    /// Tells other processes of sessions in the table of this one, so that they count them for the
    /// limits of their owners, with
    /// [`SessionStore::import_announced`](crate::SessionStore::import_announced). At most 1,024
    /// sessions at a time. Default: does nothing, for a process without others.
    fn announce(&self, _sessions: &[AnnouncedSession]) {}

    /// Returns whether all ends that were recorded so far have been imported. While this is false,
    /// identifiers that are not in the table fail with
    /// [`ResolveError::NotReady`](crate::ResolveError::NotReady). Default: `true`.
    fn is_complete(&self) -> bool {
        true
    }

    /// Returns how late the last uses of other processes can arrive. A session that is idle in this
    /// process ends only after this additional time, and only if no other process has used it.
    /// Default: zero, for a single process.
    fn peer_delay(&self) -> Duration {
        Duration::ZERO
    }
}

/// Keeps nothing: ends and last uses do not reach other processes, and are lost with this one.
impl SessionJournal for () {
    fn record(&self, _end: &SessionEnd) -> EndTicket {
        EndTicket::done()
    }

    fn record_last_uses(&self, _uses: &[LastUse]) {}
}

/// An end that all processes must know. It can be deleted when the lifetime of the sessions that it
/// ends is over, counted from [`created`](Self::created).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// Ends a session, or its older identifiers.
    Session {
        /// The owner.
        owner: ScopeId,
        /// The stable session id.
        session: [u8; 16],
        /// When the session was created.
        created: UnixTime,
        /// What of it has ended.
        extent: EndExtent,
    },
    /// Ends all sessions of a scope that were created no later than this.
    Floor {
        /// The scope; `None` for all sessions.
        scope: Option<ScopeId>,
        /// The creation time of the youngest sessions that end.
        created: UnixTime,
    },
}

impl SessionEnd {
    /// The length of the encoding, in bytes.
    pub const ENCODED_LENGTH: usize = 1 + 16 + 16 + 8 + 4;

    const SESSION: u8 = 1;
    const FLOOR: u8 = 2;
    const GLOBAL_FLOOR: u8 = 3;

    /// Returns the creation time of the session, or of the youngest sessions that end.
    pub fn created(&self) -> UnixTime {
        match self {
            Self::Session { created, .. } | Self::Floor { created, .. } => *created,
        }
    }

    /// Returns this end if it ends no session that was created after `latest`. A later floor is
    /// lowered to `latest`. Returns `None` for the end of a later session: no process accepts such
    /// a session, and its end would never expire.
    pub fn limited_to(self, latest: UnixTime) -> Option<Self> {
        match self {
            Self::Session { created, .. } => (created <= latest).then_some(self),
            Self::Floor { scope, created } => Some(Self::Floor {
                scope,
                created: created.min(latest),
            }),
        }
    }

    /// Returns the encoding for a file or a message.
    pub fn encode(&self) -> [u8; Self::ENCODED_LENGTH] {
        let mut bytes = [0; Self::ENCODED_LENGTH];
        bytes[33..41].copy_from_slice(&self.created().as_millis().to_be_bytes());
        match *self {
            Self::Session {
                owner,
                session,
                extent,
                ..
            } => {
                bytes[0] = Self::SESSION;
                bytes[1..17].copy_from_slice(&owner.0);
                bytes[17..33].copy_from_slice(&session);
                bytes[41..].copy_from_slice(&extent.lowest_generation().to_be_bytes());
            }
            Self::Floor {
                scope: Some(scope), ..
            } => {
                bytes[0] = Self::FLOOR;
                bytes[1..17].copy_from_slice(&scope.0);
            }
            Self::Floor { scope: None, .. } => bytes[0] = Self::GLOBAL_FLOOR,
        }
        bytes
    }

    /// Returns the end with this encoding; `None` if the encoding is not valid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&variant, bytes) = bytes.split_first()?;
        let (scope, bytes) = bytes.split_first_chunk()?;
        let (session, bytes) = bytes.split_first_chunk()?;
        let (created, lowest) = bytes.split_first_chunk()?;
        let created = UnixTime::from_millis(u64::from_be_bytes(*created));
        let lowest = u32::from_be_bytes(lowest.try_into().ok()?);
        let scope = ScopeId(*scope);
        match variant {
            Self::SESSION => Some(Self::Session {
                owner: scope,
                session: *session,
                created,
                extent: EndExtent::of_lowest_generation(lowest),
            }),
            Self::FLOOR => Some(Self::Floor {
                scope: Some(scope),
                created,
            }),
            Self::GLOBAL_FLOOR => Some(Self::Floor {
                scope: None,
                created,
            }),
            _ => None,
        }
    }
}

/// The last use of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastUse {
    /// The stable session id.
    pub session: SessionId,
    /// When the session was last used.
    pub time: UnixTime,
}

impl LastUse {
    /// The length of the encoding, in bytes.
    pub const ENCODED_LENGTH: usize = 16 + 8;

    /// Returns the encoding for a file or a message.
    pub fn encode(&self) -> [u8; Self::ENCODED_LENGTH] {
        let mut bytes = [0; Self::ENCODED_LENGTH];
        bytes[..16].copy_from_slice(&self.session);
        bytes[16..].copy_from_slice(&self.time.as_millis().to_be_bytes());
        bytes
    }

    /// Returns the last use with this encoding; `None` if the encoding is not valid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (session, time) = bytes.split_first_chunk()?;
        let time = UnixTime::from_millis(u64::from_be_bytes(time.try_into().ok()?));
        Some(Self {
            session: *session,
            time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E12: a process decodes what another one has encoded.
    #[test]
    fn records_are_decoded() {
        let owner = ScopeId([1; 16]);
        let session = [2; 16];
        let created = UnixTime::from_secs(3);
        let end_of_session = |extent| SessionEnd::Session {
            owner,
            session,
            created,
            extent,
        };
        let ends = [
            end_of_session(EndExtent::GenerationsBelow(7)),
            end_of_session(EndExtent::ByServer),
            end_of_session(EndExtent::ByOwner),
            SessionEnd::Floor {
                scope: Some(owner),
                created,
            },
            SessionEnd::Floor {
                scope: None,
                created,
            },
        ];
        for end in ends {
            let bytes = end.encode();
            assert_eq!(SessionEnd::decode(&bytes), Some(end));
            assert_eq!(end.created(), created);
            assert_eq!(SessionEnd::decode(&bytes[1..]), None);
            assert_eq!(SessionEnd::decode(&[bytes.as_slice(), b"x"].concat()), None);
        }
        assert_eq!(SessionEnd::decode(&[9; SessionEnd::ENCODED_LENGTH]), None);
        // The form of earlier versions, whose files remain readable.
        for (end, number) in ends.into_iter().zip([7, u32::MAX - 1, u32::MAX]) {
            let expected = [
                &[1],
                [1; 16].as_slice(),
                &[2; 16],
                &3000_u64.to_be_bytes(),
                &number.to_be_bytes(),
            ]
            .concat();
            assert_eq!(end.encode(), *expected);
        }

        let used = LastUse {
            session,
            time: created,
        };
        assert_eq!(LastUse::decode(&used.encode()), Some(used));
        assert_eq!(LastUse::decode(&used.encode()[1..]), None);
    }

    /// Without a journal, an end is confirmed at once.
    #[tokio::test]
    async fn the_default_keeps_nothing() {
        let end = SessionEnd::Floor {
            scope: None,
            created: UnixTime::from_secs(1),
        };
        assert_eq!(().record(&end).await, Ok(()));
        assert!(().is_complete());
        assert!(().peer_delay().is_zero());
    }
}
