//! Sealing with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03).
//!
//! A sealed text is the epoch of the key (one byte), a random nonce (24 bytes), the ciphertext, and
//! the tag (16 bytes). The associated data bind it to its place, so that sealed texts cannot be
//! exchanged.

use chacha20poly1305::{AeadInOut as _, KeyInit as _, Tag, XChaCha20Poly1305, XNonce};
use portcullis_authorization_server::{RandomError, random_bytes};
use zeroize::Zeroizing;

use crate::keys::{BrokerKeys, Purpose, SecretBytes};

const NONCE: usize = 24;
const TAG: usize = 16;
const HEAD: usize = 1 + NONCE;

/// Why a text cannot be sealed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// The operating system gives no random bytes.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// The text is too long, or there is no key.
    #[error("the text cannot be sealed")]
    Cipher,
}

/// Seals a text with the current key of a purpose.
pub(crate) fn seal(
    keys: &BrokerKeys,
    purpose: Purpose,
    place: &[&[u8]],
    text: &[u8],
) -> Result<Vec<u8>, SealError> {
    let (epoch, key) = keys.current(purpose).ok_or(SealError::Cipher)?;
    let nonce: [u8; NONCE] = random_bytes()?;
    let mut sealed = Vec::with_capacity(HEAD + text.len() + TAG);
    sealed.push(epoch);
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(text);
    let (_, ciphertext) = sealed.split_at_mut(HEAD);
    let tag = cipher(key)
        .encrypt_inout_detached(&nonce.into(), &associated_data(place), ciphertext.into())
        .map_err(|_| SealError::Cipher)?;
    sealed.extend_from_slice(&tag);
    Ok(sealed)
}

/// Opens a sealed text. Returns `None` if it was not sealed for this place with a key that is still
/// known.
pub(crate) fn open(
    keys: &BrokerKeys,
    purpose: Purpose,
    place: &[&[u8]],
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let (head, rest) = sealed.split_at_checked(HEAD)?;
    let (epoch, nonce) = head.split_first()?;
    let nonce: [u8; NONCE] = nonce.try_into().ok()?;
    let (ciphertext, tag) = rest.split_at_checked(rest.len().checked_sub(TAG)?)?;
    let tag: [u8; TAG] = tag.try_into().ok()?;
    let key = keys.of_epoch(purpose, *epoch)?;
    let mut text = Zeroizing::new(ciphertext.to_vec());
    cipher(key)
        .decrypt_inout_detached(
            &XNonce::from(nonce),
            &associated_data(place),
            text.as_mut_slice().into(),
            &Tag::from(tag),
        )
        .ok()?;
    Some(text)
}

/// Returns whether a text was sealed with a key of an epoch that is not known any more.
pub(crate) fn is_of_removed_epoch(keys: &BrokerKeys, purpose: Purpose, sealed: &[u8]) -> bool {
    let epoch = sealed.first();
    epoch.is_some_and(|epoch| keys.of_epoch(purpose, *epoch).is_none())
}

fn cipher(key: &SecretBytes) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new((&**key).into())
}

/// Encodes the parts of a place, each preceded by its length.
fn associated_data(place: &[&[u8]]) -> Vec<u8> {
    let mut data = b"portcullis broker 1".to_vec();
    for part in place {
        data.extend_from_slice(&(part.len() as u64).to_be_bytes());
        data.extend_from_slice(part);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSE: Purpose = Purpose::Records;

    fn keys() -> BrokerKeys {
        BrokerKeys::parse(&BrokerKeys::generate().unwrap()).unwrap()
    }

    #[test]
    fn a_text_opens_only_in_its_place_and_with_its_key() {
        let keys = keys();
        let place: &[&[u8]] = &[b"grant", b"1"];
        let sealed = seal(&keys, PURPOSE, place, b"text").unwrap();
        assert_eq!(
            open(&keys, PURPOSE, place, &sealed).unwrap().as_slice(),
            b"text"
        );
        for other in [
            [b"grant".as_slice(), b"2"],
            [b"code", b"1"],
            [b"gran", b"t1"],
        ] {
            assert!(open(&keys, PURPOSE, &other, &sealed).is_none());
        }
        assert!(open(&keys, Purpose::Forms, place, &sealed).is_none());
        assert!(open(&self::keys(), PURPOSE, place, &sealed).is_none());
        assert_ne!(seal(&keys, PURPOSE, place, b"text").unwrap(), sealed);
    }

    #[test]
    fn a_changed_text_does_not_open() {
        let keys = keys();
        let sealed = seal(&keys, PURPOSE, &[], b"text").unwrap();
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert!(open(&keys, PURPOSE, &[], &changed).is_none(), "{position}");
            assert!(open(&keys, PURPOSE, &[], &sealed[..position]).is_none());
        }
    }
}
