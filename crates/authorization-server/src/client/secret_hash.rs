//! [`SecretHash`]: a client secret as a store keeps it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::Secret;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// The SHA-256 hash of a client secret, serialized in base64url. A hash without salt and
/// repetitions suffices, because secrets are random.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretHash(Secret);

/// The length of a hash in base64url.
const ENCODED_CHARS: usize = 43;

impl SecretHash {
    /// Returns the hash of a secret.
    pub fn of(secret: &Secret) -> Self {
        let hash = Sha256::digest(secret.secret().as_bytes());
        Self(Secret::new(URL_SAFE_NO_PAD.encode(hash)))
    }

    /// Returns whether the secret has this hash. Hashes are compared in constant time.
    pub fn matches(&self, secret: &Secret) -> bool {
        Self::of(secret) == *self
    }

    fn parse(encoded: &str) -> Option<Self> {
        let is_hash = encoded.len() == ENCODED_CHARS && URL_SAFE_NO_PAD.decode(encoded).is_ok();
        is_hash.then(|| Self(Secret::new(encoded)))
    }

    fn as_str(&self) -> &str {
        self.0.secret()
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = String::deserialize(deserializer)?;
        Self::parse(&encoded)
            .ok_or_else(|| de::Error::custom("the hash of a client secret is malformed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_itself_has_its_hash() {
        let hash = SecretHash::of(&Secret::new("secret"));
        assert!(hash.matches(&Secret::new("secret")));
        for other in ["", "secret ", "Secret", hash.as_str()] {
            assert!(!hash.matches(&Secret::new(other)), "{other}");
        }
        assert_eq!(SecretHash::parse(hash.as_str()), Some(hash));
        for malformed in ["", "secret", &"!".repeat(43), &"A".repeat(44)] {
            assert_eq!(SecretHash::parse(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn debug_is_redacted() {
        let hash = SecretHash::of(&Secret::new("secret"));
        assert!(!format!("{hash:?}").contains(hash.as_str()));
    }
}
