use std::{fmt, hash::Hasher};

use siphasher::sip128::{Hasher128, SipHasher24};
use zeroize::Zeroizing;

use crate::KeyError;

/// The secret that tags identifiers. Replicas and restarts that share it can tell each other's ended
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

    /// The number that identifiers name this key by.
    pub fn epoch(&self) -> u8 {
        self.epoch
    }

    /// The keyed PRF over these parts, one behind the other.
    ///
    /// SipHash-2-4 with 128 bits of output was designed as a MAC for short inputs; with a secret key nothing
    /// better than guessing its 2^128 tags is known. That is adequate here with room to spare, since a forged
    /// tag would gain only the word "ended" instead of "unknown": the table and its exact comparison of the
    /// owner decide about access. Were the tag ever to authorize anything, it would have to be HMAC-SHA256.
    pub(crate) fn prf(&self, parts: &[&[u8]]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        for part in parts {
            hasher.write(part);
        }
        hasher.finish128().into()
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
        let whole = key.prf(&[b"resource and owner"]);
        assert_eq!(whole, key.prf(&[b"resource", b"", b" and owner"]));
        assert_ne!(whole, key.prf(&[b"resource and owneR"]));
        assert_ne!(whole, SessionKey::new(0, [2; 16]).prf(&[b"resource and owner"]));
    }

    #[test]
    fn random_keys_differ() {
        assert_ne!(*SessionKey::random().unwrap().secret, *SessionKey::random().unwrap().secret);
    }
}
