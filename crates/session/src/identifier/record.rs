//! The sealed content of an identifier, and its encoding.

use portcullis_metadata::UnixTime;

use super::RandomPart;

/// The content of an identifier, from which each process with the key can continue the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The stable id of the session, equal in all its identifiers.
    pub(crate) session: SessionId,
    /// The number of the generation. The first identifier of a session has 0.
    pub(crate) generation: u32,
    /// When the session was created.
    pub(crate) created: UnixTime,
    /// The keyed hash of the upstream's identity.
    pub(crate) upstream: u64,
    /// The keyed hash of the scopes for which this identifier was made.
    pub(crate) fingerprint: u64,
    /// The negotiated protocol version.
    pub(crate) version: Version,
    /// The upstream's identifier of the session; `None` if it does not fit in an identifier.
    pub(crate) backend_id: Option<Box<[u8]>>,
}

/// The stable id of a session: the random part of its first identifier.
pub(crate) type SessionId = RandomPart;

/// A protocol version of at most 15 bytes; empty if it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    length: u8,
    text: [u8; Self::MAX_LENGTH],
}

const FIXED: usize = size_of::<SessionId>() + 4 + 3 * 8 + 1;
/// A bit in the byte with the version's length: the record has no backend identifier, because it
/// did not fit.
const WITHOUT_BACKEND_ID: u8 = 1 << 7;

impl Record {
    /// The maximum length of the encoding, without the backend identifier.
    pub(super) const MAX_LENGTH_BEFORE_BACKEND_ID: usize = FIXED + Version::MAX_LENGTH;

    /// Appends the encoding of the record. Integers are big-endian.
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        let marker = if self.backend_id.is_none() {
            WITHOUT_BACKEND_ID
        } else {
            0
        };
        bytes.extend_from_slice(&self.session);
        bytes.extend_from_slice(&self.generation.to_be_bytes());
        for number in [self.created.as_millis(), self.upstream, self.fingerprint] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(self.version.length | marker);
        bytes.extend_from_slice(self.version.as_str().as_bytes());
        bytes.extend_from_slice(self.backend_id.as_deref().unwrap_or_default());
    }

    /// Returns the record with this encoding; `None` if the encoding is not valid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (session, bytes) = bytes.split_first_chunk()?;
        let (generation, bytes) = bytes.split_first_chunk()?;
        let (created, bytes) = bytes.split_first_chunk()?;
        let (upstream, bytes) = bytes.split_first_chunk()?;
        let (fingerprint, bytes) = bytes.split_first_chunk()?;
        let (&length, bytes) = bytes.split_first()?;
        let (version, backend_id) =
            bytes.split_at_checked(usize::from(length & !WITHOUT_BACKEND_ID))?;
        Some(Self {
            session: *session,
            generation: u32::from_be_bytes(*generation),
            created: UnixTime::from_millis(u64::from_be_bytes(*created)),
            upstream: u64::from_be_bytes(*upstream),
            fingerprint: u64::from_be_bytes(*fingerprint),
            version: Version::new(str::from_utf8(version).ok()?),
            backend_id: (length & WITHOUT_BACKEND_ID == 0).then(|| backend_id.into()),
        })
    }
}

impl Version {
    /// The maximum length of a version, in bytes.
    pub(crate) const MAX_LENGTH: usize = 15;

    /// Returns this version, or an empty one if the text is longer than 15 bytes.
    pub(crate) fn new(version: &str) -> Self {
        let mut text = [0; Self::MAX_LENGTH];
        match (text.get_mut(..version.len()), u8::try_from(version.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(version.as_bytes());
                Self { length, text }
            }
            _ => Self::default(),
        }
    }

    /// Returns the version, or an empty text.
    pub(crate) fn as_str(&self) -> &str {
        self.text
            .get(..self.length.into())
            .and_then(|text| str::from_utf8(text).ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_record() -> impl Strategy<Value = Record> {
        let backend_id = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300));
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
        (
            any::<SessionId>(),
            any::<u32>(),
            numbers,
            "[ -~]{0,15}",
            backend_id,
        )
            .prop_map(
                |(session, generation, (created, upstream, fingerprint), version, backend_id)| {
                    Record {
                        session,
                        generation,
                        created: UnixTime::from_millis(created),
                        upstream,
                        fingerprint,
                        version: Version::new(&version),
                        backend_id: backend_id.map(Into::into),
                    }
                },
            )
    }

    /// A version that is too long is dropped, not truncated.
    #[test]
    fn versions_are_whole() {
        for (version, kept) in [
            ("", ""),
            ("2025-11-25", "2025-11-25"),
            ("123456789012345", "123456789012345"),
        ] {
            assert_eq!(Version::new(version).as_str(), kept);
        }
        assert_eq!(Version::new("1234567890123456").as_str(), "");
        assert_eq!(Version::new(&"x".repeat(1000)).as_str(), "");
    }

    proptest! {
        /// E12: a record is decoded from its encoding, and a missing backend identifier is not an
        /// empty one.
        #[test]
        fn records_are_decoded(record in any_record()) {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let backend_length = record.backend_id.as_ref().map_or(0, |id| id.len());
            prop_assert!(bytes.len() <= Record::MAX_LENGTH_BEFORE_BACKEND_ID + backend_length);
            prop_assert_eq!(Record::decode(&bytes), Some(record));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Record::decode(&bytes);
        }
    }
}
