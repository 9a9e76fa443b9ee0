//! [`Message`]: what replicas publish.

use portcullis_session::{AnnouncedSession, LastUse};

use super::{acknowledgements::Batch, record::Record};
use crate::LimitUse;

/// The length of the names of replicas and connections, in characters.
const NAME_LENGTH: usize = 32;

/// What a message contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Records, with the connection and the batch to acknowledge.
    Records(Option<(String, Batch)>, Vec<Record>),
    /// The connection has received the batch.
    Acknowledgement(String, Batch),
    Uses(Vec<LastUse>),
    /// Requests that the replica with this id has counted.
    Limits(String, Vec<LimitUse>),
    /// Sessions in the table of the replica with this id.
    Announced(String, Vec<AnnouncedSession>),
    /// Tokens that introspection has found inactive.
    Inactive(Vec<[u8; 16]>),
}

impl Message {
    /// Returns the encoding of an acknowledgement, or the beginning of that of records.
    pub(super) fn encode_head(variant: u8, connection: &str, batch: Batch) -> Vec<u8> {
        [&[variant], connection.as_bytes(), &batch.to_be_bytes()].concat()
    }

    /// Returns the connection, the batch, and what follows.
    fn decode_head(bytes: &[u8]) -> Option<(String, Batch, &[u8])> {
        let (connection, bytes) = bytes.split_at_checked(NAME_LENGTH)?;
        let (batch, rest) = bytes.split_first_chunk()?;
        Some((String::from_utf8(connection.to_vec()).ok()?, u64::from_be_bytes(*batch), rest))
    }

    /// Returns the encoding of what a replica has counted.
    pub(super) fn encode_of<const N: usize>(
        variant: u8,
        replica: &str,
        records: impl Iterator<Item = [u8; N]>,
    ) -> Vec<u8> {
        let mut bytes = [&[variant], replica.as_bytes()].concat();
        records.for_each(|record| bytes.extend(record));
        bytes
    }

    /// Returns the replica that has counted, and what follows.
    fn decode_replica(bytes: &[u8]) -> Option<(String, &[u8])> {
        let (replica, records) = bytes.split_at_checked(NAME_LENGTH)?;
        Some((String::from_utf8(replica.to_vec()).ok()?, records))
    }

    /// Returns the message with this encoding. Records that cannot be decoded are left out.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (variant, records) = bytes.split_first()?;
        match variant {
            b'E' => {
                let (connection, batch, records) = Self::decode_head(records)?;
                let records = records.chunks(Record::ENCODED_LENGTH).filter_map(Record::decode).collect();
                Some(Self::Records((batch != 0).then_some((connection, batch)), records))
            }
            b'A' => Self::decode_head(records).map(|(connection, batch, _)| Self::Acknowledgement(connection, batch)),
            b'U' => Some(Self::Uses(records.chunks(LastUse::ENCODED_LENGTH).filter_map(LastUse::decode).collect())),
            b'T' => Some(Self::Inactive(records.as_chunks().0.to_vec())),
            b'L' => {
                let (replica, uses) = Self::decode_replica(records)?;
                let uses = uses.chunks(LimitUse::ENCODED_LENGTH).filter_map(LimitUse::decode).collect();
                Some(Self::Limits(replica, uses))
            }
            b'O' => {
                let (replica, sessions) = Self::decode_replica(records)?;
                let sessions = sessions.chunks(AnnouncedSession::ENCODED_LENGTH).filter_map(AnnouncedSession::decode);
                Some(Self::Announced(replica, sessions.collect()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::UnixTime;
    use portcullis_session::{ScopeId, SessionEnd};

    use super::*;

    /// E13: a message has the records that were published. Others are ignored.
    #[test]
    fn messages_have_their_records() {
        let ends: Vec<_> = (1..4_u8)
            .map(|owner| {
                let created = UnixTime::from_secs(owner.into());
                Record::End(SessionEnd::Floor { scope: Some(ScopeId([owner; 16])), created })
            })
            .collect();
        let connection = "1e".repeat(16);
        let mut bytes = Message::encode_head(b'E', &connection, 7);
        ends.iter().for_each(|end| bytes.extend(end.encode()));
        let to_acknowledge = Some((connection.clone(), 7));
        assert_eq!(Message::decode(&bytes), Some(Message::Records(to_acknowledge.clone(), ends.clone())));
        bytes.extend([9; 50]);
        assert_eq!(Message::decode(&bytes), Some(Message::Records(to_acknowledge, ends)));
        let bytes = Message::encode_head(b'E', &connection, 0);
        assert_eq!(Message::decode(&bytes), Some(Message::Records(None, Vec::new())));
        let bytes = Message::encode_head(b'A', &connection, 7);
        assert_eq!(Message::decode(&bytes), Some(Message::Acknowledgement(connection, 7)));
        assert_eq!(Message::decode(&bytes[..40]), None);
        let tokens = [[1; 16], [2; 16]];
        let bytes = [b"T", tokens.as_flattened(), b"rest"].concat();
        assert_eq!(Message::decode(&bytes), Some(Message::Inactive(tokens.to_vec())));
        let used = LastUse { session: [1; 16], time: UnixTime::from_secs(7) };
        let bytes = [b"U".as_slice(), &used.encode()].concat();
        assert_eq!(Message::decode(&bytes), Some(Message::Uses(vec![used])));
        let replica = "0f".repeat(16);
        let uses = vec![LimitUse { limit: 1, key: u64::MAX, count: 3 }, LimitUse { limit: 2, key: 5, count: 6 }];
        let mut bytes = Message::encode_of(b'L', &replica, uses.iter().map(LimitUse::encode));
        bytes.push(b'x');
        assert_eq!(Message::decode(&bytes), Some(Message::Limits(replica.clone(), uses)));
        let session = AnnouncedSession { owner: ScopeId([4; 16]), session: 5 };
        let bytes = Message::encode_of(b'O', &replica, [session.encode()].into_iter());
        assert_eq!(Message::decode(&bytes), Some(Message::Announced(replica, vec![session])));
        for message in [b"".as_slice(), b"x", b"L", &[b'L'; 32], &[b'O'; 32], &[0xff; 64]] {
            assert_eq!(Message::decode(message), None);
        }
    }
}
