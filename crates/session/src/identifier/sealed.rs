//! How identifiers are sealed, with XChaCha20-Poly1305. The associated data are the resource and
//! the owner.
//!
//! An identifier is the base64url encoding of the key's epoch (one byte), the random part (16
//! bytes) and the sealed record. The nonce consists of the random part and eight zero bytes.
//!
//! The random part of a session's first identifier is random. That of each later one is a PRF of
//! the associated data, the random part of its predecessor, and its whole record. Therefore all
//! processes make the same successor, and different records have different nonces.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::ResourceUri;

use super::{
    Identifier, RandomPart, SessionKey,
    cipher::{Cipher, TAG},
    record::Record,
};
use crate::{
    fault_injection::{Fault, is_injected},
    owner::Owner,
};

const RANDOM: usize = size_of::<RandomPart>();
/// The length of the epoch and the random part.
const HEAD: usize = 1 + RANDOM;
/// The maximum length of an identifier, in characters.
pub(super) const MAX_CHARACTERS: usize = 512;
/// The maximum length of an identifier, in decoded bytes.
const MAX_BYTES: usize = MAX_CHARACTERS / 4 * 3;
/// The maximum length of a backend identifier, in bytes: it must fit in each identifier of its
/// session.
pub(crate) const MAX_BACKEND_ID: usize =
    MAX_BYTES - HEAD - TAG - Record::MAX_LENGTH_BEFORE_BACKEND_ID;
/// The number of characters that contain the epoch and the random part, and the number of bytes
/// that they encode.
const HEAD_CHARACTERS: usize = 24;
const HEAD_BYTES: usize = HEAD_CHARACTERS / 4 * 3;

/// The associated data of an identifier: a resource and an owner. Different pairs have different
/// encodings.
pub(crate) struct AssociatedData(Vec<u8>);

impl AssociatedData {
    /// Returns the associated data of the identifiers of this owner at this resource.
    pub(crate) fn new(resource: &ResourceUri, owner: Owner<'_>) -> Self {
        let owner = if is_injected(Fault::UnboundOwner) {
            Owner::Anonymous
        } else {
            owner
        };
        let resource = resource.as_str().as_bytes();
        let owner = owner.encode();
        let [head, issuer, subject, client] = owner.parts();
        let length = (resource.len() as u64).to_be_bytes();
        Self(
            [
                b"portcullis session 1".as_slice(),
                &length,
                resource,
                head,
                issuer,
                subject,
                client,
            ]
            .concat(),
        )
    }
}

/// Seals a record with this random part. Returns `None` if the record is too long.
pub(crate) fn seal(
    key: &SessionKey,
    bound_to: &AssociatedData,
    random: &RandomPart,
    record: &Record,
) -> Option<Identifier> {
    let mut bytes = Vec::with_capacity(MAX_BYTES);
    bytes.push(key.epoch());
    bytes.extend_from_slice(random);
    record.encode(&mut bytes);
    if bytes.len() + TAG > MAX_BYTES {
        return None;
    }
    let (_, plaintext) = bytes.split_at_mut(HEAD);
    let tag = Cipher::new(key.sealing(), random)?.encrypt(&bound_to.0, plaintext)?;
    bytes.extend_from_slice(&tag);
    Some(Identifier(URL_SAFE_NO_PAD.encode(&bytes).into()))
}

/// Returns the random part of the identifier with this record that follows `predecessor`.
pub(crate) fn successor_random(
    key: &SessionKey,
    bound_to: &AssociatedData,
    predecessor: &RandomPart,
    record: &Record,
) -> RandomPart {
    let mut plaintext = Vec::with_capacity(MAX_BYTES);
    record.encode(&mut plaintext);
    // The concatenation is unambiguous: no associated data is a prefix of another, and the
    // predecessor has a fixed length.
    let derived = key.derive_bytes([bound_to.0.as_slice(), predecessor, &plaintext]);
    let mut random = RandomPart::default();
    random.copy_from_slice(&derived[..RANDOM]);
    random
}

/// The part of an identifier that is not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The epoch of the key.
    pub(crate) epoch: u8,
    pub(crate) random: RandomPart,
}

/// Returns the head of an identifier, without opening it; `None` if the text is too short or too
/// long, or does not begin with a head. Allocates nothing.
pub(crate) fn head(identifier: &[u8]) -> Option<Head> {
    if identifier.len() > MAX_CHARACTERS {
        return None;
    }
    let mut bytes = [0; HEAD_BYTES];
    let length = URL_SAFE_NO_PAD
        .decode_slice(identifier.get(..HEAD_CHARACTERS)?, &mut bytes)
        .ok()?;
    let (&epoch, random) = bytes.get(..length)?.split_first()?;
    Some(Head {
        epoch,
        random: *random.first_chunk()?,
    })
}

/// Opens an identifier. Returns `None` if it was not sealed with this key for this resource and
/// owner.
pub(crate) fn open(
    key: &SessionKey,
    bound_to: &AssociatedData,
    identifier: &[u8],
) -> Option<Record> {
    if identifier.len() > MAX_CHARACTERS {
        return None;
    }
    let mut bytes = [0; MAX_BYTES];
    let length = URL_SAFE_NO_PAD.decode_slice(identifier, &mut bytes).ok()?;
    let (&mut epoch, bytes) = bytes.get_mut(..length)?.split_first_mut()?;
    let (random, sealed) = bytes.split_first_chunk_mut()?;
    if epoch != key.epoch() {
        return None;
    }
    Record::decode(Cipher::new(key.sealing(), random)?.decrypt(&bound_to.0, sealed)?)
}
