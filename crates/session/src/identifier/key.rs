//! The key that tags identifiers.

use std::{fmt, hash::Hasher};

use sha2::{Digest, Sha256};
use siphasher::sip128::{Hasher128, SipHasher24};
use zeroize::Zeroizing;

use crate::error::KeyError;

/// The minimum length of a secret that a key is derived from, in bytes.
const MIN_SECRET: usize = 32;

/// A secret key that tags identifiers. Replicas and restarts with the same key can distinguish each other's ended
/// identifiers from unknown ones. `Debug` does not print the secret. It is wiped from memory on drop.
#[derive(Clone)]
pub struct SessionKey {
    epoch: u8,
    secret: Zeroizing<[u8; 16]>,
}

impl SessionKey {
    /// Returns a random key with epoch 0.
    ///
    /// # Errors
    /// Fails if the operating system returns no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        let mut secret = Zeroizing::new([0; 16]);
        getrandom::fill(&mut *secret).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self { epoch: 0, secret })
    }

    /// Returns a key with this secret. `epoch` identifies the key and is readable in every identifier. Use a new epoch for
    /// each new key.
    ///
    /// The caller must ensure that the secret is random.
    pub fn new(epoch: u8, secret: [u8; 16]) -> Self {
        Self { epoch, secret: Zeroizing::new(secret) }
    }

    /// Derives a key from a secret of any form, such as the output of `openssl rand -base64 32`. Key and epoch depend only
    /// on the secret.
    ///
    /// The caller must ensure that the secret is random.
    ///
    /// # Errors
    /// Fails if the secret is shorter than 32 bytes.
    pub fn derive(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < MIN_SECRET {
            return Err(KeyError::TooShort);
        }
        let hash: Zeroizing<[u8; 32]> = Zeroizing::new(
            Sha256::new().chain_update(b"portcullis session key").chain_update(secret).finalize().into(),
        );
        let mut key = Self { epoch: hash[16], secret: Zeroizing::new([0; 16]) };
        key.secret.copy_from_slice(&hash[..16]);
        Ok(key)
    }

    /// Returns the number that identifies this key in identifiers.
    pub fn epoch(&self) -> u8 {
        self.epoch
    }

    /// Returns a key for the hashes in logs and comparisons. Its derivation input is shorter than any tagged input, so that
    /// both are distinct.
    pub(crate) fn log_key(&self) -> Self {
        Self { epoch: 0, secret: Zeroizing::new(self.prf([b"marks".as_slice()]).to_le_bytes()) }
    }

    /// Returns whether both keys have the same secret. The comparison does not take constant time.
    pub(crate) fn same_secret(&self, other: &Self) -> bool {
        *self.secret == *other.secret
    }

    /// Computes the keyed PRF over the concatenated parts.
    ///
    /// SipHash-2-4 with 128 bits of output is a MAC for short inputs. No attack better than guessing is known. This suffices
    /// because a forged tag only changes the result from "unknown" to "ended": access depends on the table and the exact
    /// comparison of the owner. A tag that authorizes access would have to be HMAC-SHA256.
    pub(crate) fn prf<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
        let mut hasher = self.hasher();
        for part in parts {
            hasher.write(part);
        }
        hasher.finish128().into()
    }

    /// Returns the PRF as a hasher.
    pub(crate) fn hasher(&self) -> SipHasher24 {
        SipHasher24::new_with_key(&self.secret)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKey").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E3: `Debug` does not print the key.
    #[test]
    fn debug_is_redacted() {
        let shown = format!("{:?}", SessionKey::new(7, [0xAB; 16]));
        assert_eq!(shown, "SessionKey { epoch: 7, .. }");
    }

    #[test]
    fn prf_depends_on_key_and_bytes_only() {
        let key = SessionKey::new(0, [1; 16]);
        let whole = key.prf([b"resource and owner".as_slice()]);
        assert_eq!(whole, key.prf([b"resource".as_slice(), b"", b" and owner"]));
        assert_ne!(whole, key.prf([b"resource and owneR".as_slice()]));
        assert_ne!(whole, SessionKey::new(0, [2; 16]).prf([b"resource and owner".as_slice()]));
        assert_ne!(whole, key.log_key().prf([b"resource and owner".as_slice()]));
    }

    #[test]
    fn random_keys_differ() {
        assert!(!SessionKey::random().unwrap().same_secret(&SessionKey::random().unwrap()));
    }

    /// E10: the same secret gives the same key and epoch. A short secret is rejected.
    #[test]
    fn derived_keys_follow_from_their_secret() {
        let secret = b"0123456789abcdef0123456789abcdef";
        let (one, other) = (SessionKey::derive(secret).unwrap(), SessionKey::derive(secret).unwrap());
        assert!(one.same_secret(&other) && one.epoch() == other.epoch());
        // The identifiers of other versions and replicas must remain valid.
        assert_eq!((one.epoch(), one.secret[..4].to_vec()), (136, vec![208, 61, 130, 163]));
        let longer = SessionKey::derive(b"0123456789abcdef0123456789abcdef0").unwrap();
        assert!(!one.same_secret(&longer));
        assert_eq!(SessionKey::derive(&secret[1..]).unwrap_err(), KeyError::TooShort);
        assert_eq!(SessionKey::derive(b"").unwrap_err(), KeyError::TooShort);
        let epochs: std::collections::BTreeSet<_> = (0..16_u8)
            .map(|last| SessionKey::derive(&[[b'x'; 31].as_slice(), &[last]].concat()).unwrap().epoch())
            .collect();
        assert!(epochs.len() > 8, "epochs follow from the secrets");
    }
}
