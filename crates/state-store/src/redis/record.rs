//! [`Record`]: what every replica must know, and the drops of cached tokens that this one knows.

use std::{collections::BTreeSet, time::Duration};

use parking_lot::Mutex;
use portcullis_metadata::UnixTime;
use portcullis_session::{ScopeId, SessionEnd};

/// The maximum number of drops that a replica remembers. A forgotten one is applied again when it
/// is read again.
const MAX_DROPS: usize = 1024;
/// How much longer than ends of the same time drops remain in Redis: the longest time for which a
/// token is cached.
const CACHE_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// What every replica must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    End(SessionEnd),
    Drop(TokenDrop),
}

/// An administrator has dropped the cached tokens of an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenDrop {
    pub(crate) time: UnixTime,
    /// Random, so that each drop is applied once.
    pub(crate) id: [u8; 16],
    pub(crate) issuer: ScopeId,
}

impl Record {
    /// The length of the encoding, in bytes.
    pub(crate) const ENCODED_LENGTH: usize = SessionEnd::ENCODED_LENGTH;
    /// The first byte of a drop. Those of ends are smaller.
    const DROP: u8 = 0x80;

    /// Returns the encoding for a message.
    pub(crate) fn encode(&self) -> [u8; Self::ENCODED_LENGTH] {
        let drop = match self {
            Self::End(end) => return end.encode(),
            Self::Drop(drop) => drop,
        };
        let mut bytes = [0; Self::ENCODED_LENGTH];
        bytes[0] = Self::DROP;
        bytes[1..17].copy_from_slice(&drop.issuer.0);
        bytes[17..33].copy_from_slice(&drop.id);
        bytes[33..41].copy_from_slice(&drop.time.as_millis().to_be_bytes());
        bytes
    }

    /// Returns the record with this encoding.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&variant, rest) = bytes.split_first()?;
        if variant != Self::DROP {
            return SessionEnd::decode(bytes).map(Self::End);
        }
        let (issuer, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk()?;
        let time = UnixTime::from_millis(u64::from_be_bytes(*time));
        (rest.len() == 4).then_some(Self::Drop(TokenDrop {
            time,
            id: *id,
            issuer: ScopeId(*issuer),
        }))
    }

    /// Returns the time whose age determines when the record is removed.
    pub(crate) fn matters_since(&self) -> UnixTime {
        match self {
            Self::End(end) => end.created(),
            Self::Drop(drop) => drop.time.saturating_add(CACHE_LIFETIME),
        }
    }
}

/// The drops that this replica has applied.
#[derive(Default)]
pub(crate) struct KnownDrops(Mutex<BTreeSet<TokenDrop>>);

impl KnownDrops {
    /// Adds a drop. Returns whether it is new.
    pub(crate) fn add(&self, drop: TokenDrop) -> bool {
        let mut known = self.0.lock();
        let is_new = known.insert(drop);
        if known.len() > MAX_DROPS {
            known.pop_first();
        }
        is_new
    }

    /// Returns the drops that [matter](Record::matters_since) since `oldest` or later, and forgets
    /// the others.
    pub(crate) fn since(&self, oldest: UnixTime) -> Vec<Record> {
        let mut known = self.0.lock();
        known.retain(|drop| Record::Drop(*drop).matters_since() >= oldest);
        known.iter().copied().map(Record::Drop).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_drop(secs: u64) -> TokenDrop {
        TokenDrop {
            time: UnixTime::from_secs(secs),
            id: [7; 16],
            issuer: ScopeId([9; 16]),
        }
    }

    /// E13: what one replica has recorded, another one reads.
    #[test]
    fn records_return_from_their_encoding() {
        let end = SessionEnd::Floor {
            scope: Some(ScopeId([1; 16])),
            created: UnixTime::from_secs(3),
        };
        for record in [Record::End(end), Record::Drop(token_drop(5))] {
            let bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some(record));
            assert_eq!(Record::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Record::decode(&[bytes.as_slice(), b"x"].concat()), None);
        }
        assert_eq!(Record::decode(&[9; Record::ENCODED_LENGTH]), None);
        assert_eq!(Record::decode(b""), None);
    }

    /// E13: each drop is applied once, their number is bounded, and they are forgotten when no
    /// older token is cached any more.
    #[test]
    fn drops_are_known_once() {
        let known = KnownDrops::default();
        assert!(known.add(token_drop(1000)));
        assert!(!known.add(token_drop(1000)));
        assert!(
            known.add(TokenDrop {
                id: [8; 16],
                ..token_drop(1000)
            }),
            "another one at the same time"
        );
        assert_eq!(known.since(UnixTime::from_secs(1300)).len(), 2);
        assert!(known.since(UnixTime::from_secs(1301)).is_empty());
        for secs in 0..=MAX_DROPS as u64 {
            assert!(known.add(token_drop(secs)));
        }
        assert_eq!(known.since(UnixTime::default()).len(), MAX_DROPS);
        assert!(known.add(token_drop(0)), "the oldest one was forgotten");
    }
}
