use std::{fmt, hash::Hasher};

use sha2::{Digest, Sha256};
use siphasher::sip128::{Hasher128, SipHasher24};
use zeroize::Zeroizing;

use crate::KeyError;

/// The shortest secret that a key is derived from, in bytes.
const MIN_SECRET: usize = 32;

/// A secret that tags identifiers. Replicas and restarts that share it can tell each other's ended
/// identifiers from unknown ones. Redacted in `Debug`, wiped from memory when dropped.
#[derive(Clone)]
pub struct SessionKey {
    epoch: u8,
    secret: Zeroizing<[u8; 16]>,
}

impl SessionKey {
    /// A key of the operating system's generator, of epoch 0.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        let mut secret = Zeroizing::new([0; 16]);
        getrandom::fill(&mut *secret).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self { epoch: 0, secret })
    }

    /// A key from elsewhere. `epoch` is readable in every identifier and names the key: give each new key a new one.
    ///
    /// The secret is taken as it is: that it is random and secret is the caller's care.
    pub fn new(epoch: u8, secret: [u8; 16]) -> Self {
        Self { epoch, secret: Zeroizing::new(secret) }
    }

    /// A key derived from a secret of any form, such as the line that `openssl rand -base64 32` prints. Key and epoch
    /// follow from the secret alone, so that everybody who has it names it the same.
    ///
    /// That the secret is random is the caller's care.
    ///
    /// # Errors
    /// When the secret is shorter than 32 bytes.
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

    /// The number that identifiers name this key by.
    pub fn epoch(&self) -> u8 {
        self.epoch
    }

    /// A key for hashes that never leave this process as they are. What is hashed for it is shorter than anything
    /// that is tagged, so that the two never meet.
    pub(crate) fn for_marks(&self) -> Self {
        Self { epoch: 0, secret: Zeroizing::new(self.prf([b"marks".as_slice()]).to_le_bytes()) }
    }

    /// Whether both have the same secret, whatever their epochs. Not for secrets that somebody may guess at.
    pub(crate) fn same_secret(&self, other: &Self) -> bool {
        *self.secret == *other.secret
    }

    /// The keyed PRF over these parts, one behind the other.
    ///
    /// SipHash-2-4 with 128 bits of output was designed as a MAC for short inputs; with a secret key nothing
    /// better than guessing its 2^128 tags is known. That is adequate here with room to spare, since a forged
    /// tag would gain only the word "ended" instead of "unknown": the table and its exact comparison of the
    /// owner decide about access. Were the tag ever to authorize anything, it would have to be HMAC-SHA256.
    pub(crate) fn prf<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
        let mut hasher = self.hasher();
        for part in parts {
            hasher.write(part);
        }
        hasher.finish128().into()
    }

    /// The PRF in steps.
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

    /// E3: the key never shows in a log.
    #[test]
    fn debug_is_redacted() {
        let shown = format!("{:?}", SessionKey::new(7, [0xAB; 16]));
        assert_eq!(shown, "SessionKey { epoch: 7, .. }");
    }

    #[test]
    fn prf_depends_on_key_and_bytes_but_not_on_their_division() {
        let key = SessionKey::new(0, [1; 16]);
        let whole = key.prf([b"resource and owner".as_slice()]);
        assert_eq!(whole, key.prf([b"resource".as_slice(), b"", b" and owner"]));
        assert_ne!(whole, key.prf([b"resource and owneR".as_slice()]));
        assert_ne!(whole, SessionKey::new(0, [2; 16]).prf([b"resource and owner".as_slice()]));
        assert_ne!(whole, key.for_marks().prf([b"resource and owner".as_slice()]));
    }

    #[test]
    fn random_keys_differ() {
        assert!(!SessionKey::random().unwrap().same_secret(&SessionKey::random().unwrap()));
    }

    /// E10: the same secret gives the same key and epoch everywhere; a short one gives none.
    #[test]
    fn derived_keys_follow_from_their_secret() {
        let secret = b"0123456789abcdef0123456789abcdef";
        let (one, other) = (SessionKey::derive(secret).unwrap(), SessionKey::derive(secret).unwrap());
        assert!(one.same_secret(&other) && one.epoch() == other.epoch());
        // Identifiers of other versions and replicas must go on verifying.
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
