use std::fmt;

use zeroize::Zeroizing;

mod access_token;
pub(crate) mod constant_time;

pub use access_token::AccessToken;

/// A secret string: a client secret, an authorization code, a refresh token.
///
/// It is wiped from memory on drop and compared in constant time. It does not implement `Display`
/// or `Serialize`; `Debug` prints `Secret([redacted])`.
#[derive(Clone)]
pub struct Secret(Zeroizing<Box<str>>);

impl Secret {
    /// Wraps a string without checking it. If the conversion copies the string, the original is not
    /// wiped.
    pub fn new(secret: impl Into<Box<str>>) -> Self {
        Self(Zeroizing::new(secret.into()))
    }

    /// Returns the secret. Keep it out of logs, errors and URLs.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        constant_time::equal(self.secret().as_bytes(), other.secret().as_bytes())
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J3: `Debug` does not print the secret.
    #[test]
    fn debug_is_redacted() {
        assert_eq!(format!("{:?}", Secret::new("hush")), "Secret([redacted])");
    }

    #[test]
    fn equal_strings_are_equal() {
        for secret in ["", "a", "abc"] {
            assert_eq!(Secret::new(secret), Secret::new(secret));
        }
        for (left, right) in [("", "a"), ("a", "ab"), ("abc", "xbc"), ("abc", "abx")] {
            assert_ne!(Secret::new(left), Secret::new(right));
        }
    }
}
