//! The sealing of identifiers: XChaCha20-Poly1305 over the record, bound to resource and owner.
//!
//! An identifier is the base64url encoding of the key's epoch, 16 bytes, and the sealed record. The nonce is the 16 bytes
//! and eight zero bytes. The 16 bytes of a session's first identifier are random; those of each later one are a PRF of its
//! associated data, its predecessor's 16 bytes and its whole record. So all processes make the same successor, and different
//! records never have the same nonce.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::ResourceUri;

use super::{
    Identifier, RandomPart, SessionKey,
    cipher::{Cipher, TAG},
    record::Record,
};
use crate::{
    owner::Owner,
    planted::{Fault, is_planted},
};

const RANDOM: usize = size_of::<RandomPart>();
/// Epoch and random part.
const HEAD: usize = 1 + RANDOM;
/// The longest identifier.
pub(super) const MAX_CHARACTERS: usize = 512;
/// The bytes of the longest identifier.
const MAX_BYTES: usize = MAX_CHARACTERS / 4 * 3;
/// The longest backend identifier that fits in every identifier of a session.
pub(crate) const MAX_BACKEND_ID: usize = MAX_BYTES - HEAD - TAG - Record::MAX_LENGTH_BEFORE_BACKEND_ID;
/// The characters that contain epoch and random part, and the bytes that they encode.
const HEAD_CHARACTERS: usize = 24;
const HEAD_BYTES: usize = HEAD_CHARACTERS / 4 * 3;

/// The data that an identifier is bound to: a resource and an owner, encoded unambiguously.
pub(crate) struct AssociatedData(Vec<u8>);

impl AssociatedData {
    pub(crate) fn new(resource: &ResourceUri, owner: Owner<'_>) -> Self {
        let owner = if is_planted(Fault::UnboundOwner) { Owner::Anonymous } else { owner };
        let (resource, owner) = (resource.as_str().as_bytes(), owner.encode());
        let [head, issuer, subject, client] = owner.parts();
        let length = (resource.len() as u64).to_be_bytes();
        Self([b"portcullis session 1".as_slice(), &length, resource, head, issuer, subject, client].concat())
    }
}

/// Seals a record with this random part. `None` if the record is too long.
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

/// Returns the random part of an identifier that follows another one.
pub(crate) fn successor_random(
    key: &SessionKey,
    bound_to: &AssociatedData,
    predecessor: &RandomPart,
    record: &Record,
) -> RandomPart {
    let mut plaintext = Vec::with_capacity(MAX_BYTES);
    record.encode(&mut plaintext);
    // The associated data is prefix-free, and the predecessor's bytes have a fixed length.
    let derived = key.derive_bytes([bound_to.0.as_slice(), predecessor, &plaintext]);
    let mut random = RandomPart::default();
    random.copy_from_slice(&derived[..RANDOM]);
    random
}

/// Returns the epoch and the random part of an identifier, without opening it. Allocates nothing. `None` if no identifier
/// begins like that.
pub(crate) fn head(identifier: &[u8]) -> Option<(u8, RandomPart)> {
    if identifier.len() > MAX_CHARACTERS {
        return None;
    }
    let mut bytes = [0; HEAD_BYTES];
    let length = URL_SAFE_NO_PAD.decode_slice(identifier.get(..HEAD_CHARACTERS)?, &mut bytes).ok()?;
    let (&epoch, random) = bytes.get(..length)?.split_first()?;
    Some((epoch, *random.first_chunk()?))
}

/// Opens an identifier. `None` if it was not sealed with this key for this resource and owner.
pub(crate) fn open(key: &SessionKey, bound_to: &AssociatedData, identifier: &[u8]) -> Option<Record> {
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
