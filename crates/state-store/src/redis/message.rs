//! [`Message`]: what replicas publish to each other, and its encoding.
//!
//! The first byte is the type of the message. A head of fixed length with the name of the sender
//! follows, except before inactive tokens, and then records of fixed length.

use portcullis_session::{AnnouncedSession, LastUse};

use super::{acknowledgements::Batch, record::Record};
use crate::LimitUse;

/// The length of the names of replicas and connections, in bytes.
const NAME_LENGTH: usize = 32;

const RECORDS: u8 = b'E';
const ACKNOWLEDGEMENT: u8 = b'A';
const LAST_USES: u8 = b'S';
const LIMIT_USES: u8 = b'L';
const ANNOUNCED: u8 = b'P';
const INACTIVE_TOKENS: u8 = b'T';
/// The encoding of a missing batch.
const NO_BATCH: Batch = 0;

/// A message of a replica, this one or another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Ends and drops. With a batch, the connection waits for an acknowledgement.
    Records {
        connection: String,
        batch: Option<Batch>,
        records: Vec<Record>,
        /// Whether some records could not be decoded. They are left out, so the batch must not be
        /// acknowledged.
        is_incomplete: bool,
    },
    /// The connection has received the batch.
    Acknowledgement { connection: String, batch: Batch },
    /// The last uses of sessions at a replica.
    LastUses { replica: String, uses: Vec<LastUse> },
    /// Requests that a replica has counted.
    LimitUses {
        replica: String,
        uses: Vec<LimitUse>,
    },
    /// Sessions in the table of a replica.
    Announced {
        replica: String,
        sessions: Vec<AnnouncedSession>,
    },
    /// Tokens that introspection has found inactive, by their hashes.
    InactiveTokens(Vec<[u8; 16]>),
}

impl Message {
    /// Returns the beginning of [`Records`](Self::Records). The encodings of the records follow.
    pub(super) fn head_of_records(connection: &str, batch: Option<Batch>) -> Vec<u8> {
        [
            &[RECORDS],
            connection.as_bytes(),
            &batch.unwrap_or(NO_BATCH).to_be_bytes(),
        ]
        .concat()
    }

    /// Returns the encoding of [`Acknowledgement`](Self::Acknowledgement).
    pub(super) fn acknowledgement(connection: &str, batch: Batch) -> Vec<u8> {
        [
            &[ACKNOWLEDGEMENT],
            connection.as_bytes(),
            &batch.to_be_bytes(),
        ]
        .concat()
    }

    /// Returns the beginning of [`LastUses`](Self::LastUses). The encodings of the uses follow.
    pub(super) fn head_of_last_uses(replica: &str) -> Vec<u8> {
        [&[LAST_USES], replica.as_bytes()].concat()
    }

    /// Returns the encoding of [`LimitUses`](Self::LimitUses).
    pub(super) fn limit_uses(replica: &str, uses: &[LimitUse]) -> Vec<u8> {
        let mut bytes = [&[LIMIT_USES], replica.as_bytes()].concat();
        bytes.extend(uses.iter().flat_map(LimitUse::encode));
        bytes
    }

    /// Returns the encoding of [`Announced`](Self::Announced).
    pub(super) fn announced(replica: &str, sessions: &[AnnouncedSession]) -> Vec<u8> {
        let mut bytes = [&[ANNOUNCED], replica.as_bytes()].concat();
        bytes.extend(sessions.iter().flat_map(AnnouncedSession::encode));
        bytes
    }

    /// Returns the encoding of [`InactiveTokens`](Self::InactiveTokens).
    pub(super) fn inactive(tokens: &[[u8; 16]]) -> Vec<u8> {
        [&[INACTIVE_TOKENS], tokens.as_flattened()].concat()
    }

    /// Returns the message with this encoding; `None` if its type is unknown or its head is
    /// malformed. Records that cannot be decoded are left out.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (message_type, bytes) = bytes.split_first()?;
        match *message_type {
            RECORDS => {
                let (connection, bytes) = split_name(bytes)?;
                let (batch, bytes) = split_batch(bytes)?;
                let encoded = bytes.chunks(Record::ENCODED_LENGTH);
                let count = encoded.len();
                let records: Vec<_> = encoded.filter_map(Record::decode).collect();
                let is_incomplete = records.len() < count;
                Some(Self::Records {
                    connection,
                    batch: (batch != NO_BATCH).then_some(batch),
                    records,
                    is_incomplete,
                })
            }
            ACKNOWLEDGEMENT => {
                let (connection, bytes) = split_name(bytes)?;
                let (batch, _) = split_batch(bytes)?;
                Some(Self::Acknowledgement { connection, batch })
            }
            LAST_USES => {
                let (replica, bytes) = split_name(bytes)?;
                let uses = bytes
                    .chunks(LastUse::ENCODED_LENGTH)
                    .filter_map(LastUse::decode)
                    .collect();
                Some(Self::LastUses { replica, uses })
            }
            LIMIT_USES => {
                let (replica, bytes) = split_name(bytes)?;
                let uses = bytes
                    .chunks(LimitUse::ENCODED_LENGTH)
                    .filter_map(LimitUse::decode)
                    .collect();
                Some(Self::LimitUses { replica, uses })
            }
            ANNOUNCED => {
                let (replica, bytes) = split_name(bytes)?;
                let sessions = bytes
                    .chunks(AnnouncedSession::ENCODED_LENGTH)
                    .filter_map(AnnouncedSession::decode);
                Some(Self::Announced {
                    replica,
                    sessions: sessions.collect(),
                })
            }
            INACTIVE_TOKENS => Some(Self::InactiveTokens(bytes.as_chunks().0.to_vec())),
            _ => None,
        }
    }
}

/// Returns the name of a replica or connection, and what follows.
fn split_name(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (name, rest) = bytes.split_at_checked(NAME_LENGTH)?;
    Some((str::from_utf8(name).ok()?.to_owned(), rest))
}

/// Returns the batch, and what follows.
fn split_batch(bytes: &[u8]) -> Option<(Batch, &[u8])> {
    let (batch, rest) = bytes.split_first_chunk()?;
    Some((Batch::from_be_bytes(*batch), rest))
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::UnixTime;
    use portcullis_session::{ScopeId, SessionEnd};

    use super::*;

    const NAME: &str = "1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e";

    fn end(owner: u8) -> Record {
        let created = UnixTime::from_secs(owner.into());
        Record::End(SessionEnd::Floor {
            scope: Some(ScopeId([owner; 16])),
            created,
        })
    }

    /// E13: what one replica publishes, another one reads. Bytes after the last record are ignored.
    #[test]
    fn messages_are_decoded() {
        let connection = NAME.to_owned();
        let replica = NAME.to_owned();
        let used = LastUse {
            session: [1; 16],
            time: UnixTime::from_secs(7),
        };
        let uses = vec![
            LimitUse {
                limit: 1,
                key: u64::MAX,
                count: 3,
            },
            LimitUse {
                limit: 2,
                key: 5,
                count: 6,
            },
        ];
        let sessions = vec![AnnouncedSession {
            owner: ScopeId([4; 16]),
            subject: None,
            session: 5,
        }];
        let tokens = vec![[1; 16], [2; 16]];
        let cases = [
            (
                Message::acknowledgement(NAME, 7),
                Message::Acknowledgement {
                    connection,
                    batch: 7,
                },
            ),
            (
                [Message::head_of_last_uses(NAME), used.encode().to_vec()].concat(),
                Message::LastUses {
                    replica: replica.clone(),
                    uses: vec![used],
                },
            ),
            (
                Message::limit_uses(NAME, &uses),
                Message::LimitUses {
                    replica: replica.clone(),
                    uses,
                },
            ),
            (
                Message::announced(NAME, &sessions),
                Message::Announced { replica, sessions },
            ),
            (Message::inactive(&tokens), Message::InactiveTokens(tokens)),
        ];
        for (mut bytes, message) in cases {
            assert_eq!(Message::decode(&bytes).as_ref(), Some(&message));
            bytes.push(b'x');
            assert_eq!(Message::decode(&bytes), Some(message));
        }
    }

    /// E13: a message of which a part cannot be read has the other records, and is marked as
    /// incomplete.
    #[test]
    fn unreadable_records_are_reported() {
        let unknown = [9; Record::ENCODED_LENGTH];
        let cases = [
            ("nothing", [].as_slice(), false),
            ("an unknown record", &unknown, true),
            ("one byte", b"x", true),
        ];
        for batch in [None, Some(7)] {
            for (name, rest, is_incomplete) in cases {
                let records = vec![end(1), end(2)];
                let mut bytes = Message::head_of_records(NAME, batch);
                records
                    .iter()
                    .for_each(|record| bytes.extend(record.encode()));
                bytes.extend_from_slice(rest);
                let expected = Message::Records {
                    connection: NAME.to_owned(),
                    batch,
                    records,
                    is_incomplete,
                };
                assert_eq!(
                    Message::decode(&bytes),
                    Some(expected),
                    "{name} after the records"
                );
            }
        }
    }

    #[test]
    fn other_messages_are_rejected() {
        let acknowledgement = Message::acknowledgement(NAME, 7);
        let cases = [
            ("empty", b"".as_slice()),
            ("an unknown type", b"x"),
            ("no sender", b"L"),
            ("a sender that is cut off", &[b'O'; NAME_LENGTH]),
            ("a batch that is cut off", &acknowledgement[..40]),
            ("not UTF-8", &[0xff; 64]),
            (
                "a sender that is not UTF-8",
                &[&[LAST_USES], [0xff; 64].as_slice()].concat(),
            ),
        ];
        for (name, bytes) in cases {
            assert_eq!(Message::decode(bytes), None, "{name}");
        }
    }
}
