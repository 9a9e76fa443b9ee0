//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03): HChaCha20, and the ChaCha20-Poly1305 of `ring`.
//!
//! The `chacha20poly1305` crate takes 1.6 us for an identifier, most of it to prepare; this takes
//! 0.4 us.

use chacha20::{R20, hchacha};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::RandomPart;

/// The length of the authentication tag.
pub(super) const TAG: usize = 16;

/// A cipher for one record. The nonce consists of the random part and eight zero bytes.
pub(super) struct Cipher(LessSafeKey);

impl Cipher {
    /// Always succeeds: the key has the right length.
    pub(super) fn new(key: &[u8; 32], random: &RandomPart) -> Option<Self> {
        let subkey = Zeroizing::new(hchacha::<R20>(key.into(), random.into()).0);
        UnboundKey::new(&CHACHA20_POLY1305, &*subkey)
            .ok()
            .map(LessSafeKey::new)
            .map(Self)
    }

    /// Encrypts in place and returns the tag.
    pub(super) fn encrypt(
        &self,
        associated_data: &[u8],
        plaintext: &mut [u8],
    ) -> Option<[u8; TAG]> {
        let tag = self
            .0
            .seal_in_place_separate_tag(zeros(), Aad::from(associated_data), plaintext)
            .ok()?;
        tag.as_ref().try_into().ok()
    }

    /// Decrypts a ciphertext that ends with its tag, in place. Returns `None` if it is not
    /// authentic.
    pub(super) fn decrypt<'a>(
        &self,
        associated_data: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        self.0
            .open_in_place(zeros(), Aad::from(associated_data), sealed)
            .ok()
            .map(|plaintext| &*plaintext)
    }
}

/// Returns the nonce of the inner cipher: four zero bytes, and the last eight bytes of the outer
/// nonce, which are zero, too.
fn zeros() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use chacha20poly1305::{AeadInOut as _, KeyInit as _, XChaCha20Poly1305, XNonce};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// E12: the result is that of another implementation of XChaCha20-Poly1305.
        #[test]
        fn it_is_xchacha20_poly1305(
            key in any::<[u8; 32]>(),
            random in any::<RandomPart>(),
            associated_data in proptest::collection::vec(any::<u8>(), 0..300),
            plaintext in proptest::collection::vec(any::<u8>(), 0..400),
            changed in any::<proptest::sample::Index>(),
        ) {
            let mut nonce = XNonce::default();
            nonce[..random.len()].copy_from_slice(&random);
            let mut expected = plaintext.clone();
            let other = XChaCha20Poly1305::new((&key).into());
            let tag = other.encrypt_inout_detached(&nonce, &associated_data, expected.as_mut_slice().into()).unwrap();
            expected.extend_from_slice(&tag);

            let cipher = Cipher::new(&key, &random).unwrap();
            let mut sealed = plaintext.clone();
            let tag = cipher.encrypt(&associated_data, &mut sealed).unwrap();
            sealed.extend_from_slice(&tag);
            prop_assert_eq!(&sealed, &expected);
            let mut opened = sealed.clone();
            prop_assert_eq!(cipher.decrypt(&associated_data, &mut opened), Some(plaintext.as_slice()));

            let position = changed.index(sealed.len());
            sealed[position] ^= 1;
            prop_assert_eq!(cipher.decrypt(&associated_data, &mut sealed), None);
        }
    }
}
