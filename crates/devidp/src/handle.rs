//! [`Handle`]: random references to the entries of tables, such as codes and refresh tokens.

use portcullis_authorization_server::{RandomError, random_secret};
use portcullis_metadata::Secret;

/// A random reference to an entry of a table: a code, a device code, a token or a consent ticket.
///
/// The first half is the key of the entry. The whole handle is then compared in constant time,
/// because the lookup by key is not.
#[derive(Clone)]
pub(crate) struct Handle(Secret);

const HALF_BYTES: usize = 16;
const HALF_CHARS: usize = 22;

impl Handle {
    /// Generates a handle of 2 x 128 random bits.
    pub(crate) fn generate() -> Result<Self, RandomError> {
        let id = random_secret(HALF_BYTES)?;
        let secret = random_secret(HALF_BYTES)?;
        Ok(Self(Secret::new(format!(
            "{}{}",
            id.secret(),
            secret.secret()
        ))))
    }

    /// Returns a handle with the same key and a new secret.
    pub(crate) fn with_new_secret(&self) -> Result<Self, RandomError> {
        let secret = random_secret(HALF_BYTES)?;
        Ok(Self(Secret::new(format!(
            "{}{}",
            self.id(),
            secret.secret()
        ))))
    }

    /// Parses a handle from a request. Checks only the length.
    pub(crate) fn parse(handle: &str) -> Option<Self> {
        let is_valid = handle.len() == 2 * HALF_CHARS && handle.is_ascii();
        is_valid.then(|| Self(Secret::new(handle)))
    }

    /// Returns the handle to send to its owner.
    pub(crate) fn as_str(&self) -> &str {
        self.0.secret()
    }

    /// Returns the first half, which is the key of the entry.
    pub(crate) fn id(&self) -> &str {
        &self.as_str()[..HALF_CHARS]
    }

    /// Returns whether this is the original handle. Compares in constant time.
    pub(crate) fn matches(&self, original: &Self) -> bool {
        self.0 == original.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_round_trip() {
        let handle = Handle::generate().unwrap();
        let parsed = Handle::parse(handle.as_str()).unwrap();
        assert_eq!(parsed.id(), handle.id());
        assert!(parsed.matches(&handle));
    }

    #[test]
    fn another_secret_does_not_match() {
        let handle = Handle::generate().unwrap();
        let forged = format!(
            "{}{}",
            handle.id(),
            random_secret(HALF_BYTES).unwrap().secret()
        );
        assert!(!Handle::parse(&forged).unwrap().matches(&handle));
    }

    #[test]
    fn a_new_secret_keeps_the_id_and_does_not_match() {
        let handle = Handle::generate().unwrap();
        let renewed = handle.with_new_secret().unwrap();
        assert_eq!(renewed.id(), handle.id());
        assert!(!renewed.matches(&handle));
        assert!(!handle.matches(&renewed));
    }

    #[test]
    fn other_lengths_and_characters_are_rejected() {
        assert!(Handle::parse("").is_none());
        assert!(Handle::parse(&"a".repeat(43)).is_none());
        assert!(Handle::parse(&"é".repeat(22)).is_none());
    }
}
