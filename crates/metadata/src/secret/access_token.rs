//! [`AccessToken`]: a bearer access token.

use std::fmt;

use zeroize::Zeroizing;

use crate::secret::constant_time;

/// A bearer access token (RFC 6750).
///
/// It is wiped from memory on drop and compared in constant time. It does not implement `Display`
/// or `Serialize`; `Debug` prints `AccessToken([redacted])`. The content is not checked: it may be
/// a JWT, an opaque string or invalid.
#[derive(Clone)]
pub struct AccessToken(Zeroizing<Box<str>>);

impl AccessToken {
    /// Wraps a string without checking it.
    pub fn new(token: impl Into<Box<str>>) -> Self {
        Self(Zeroizing::new(token.into()))
    }

    /// Returns the token. Keep it out of logs, errors and URLs.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl PartialEq for AccessToken {
    fn eq(&self, other: &Self) -> bool {
        constant_time::equal(self.secret().as_bytes(), other.secret().as_bytes())
    }
}

impl Eq for AccessToken {}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2, J3: `Debug` does not print the token.
    #[test]
    fn debug_is_redacted() {
        assert_eq!(
            format!("{:?}", AccessToken::new("hush")),
            "AccessToken([redacted])"
        );
    }

    #[test]
    fn equal_strings_are_equal() {
        assert_eq!(AccessToken::new("a"), AccessToken::new(String::from("a")));
        assert_ne!(AccessToken::new("a"), AccessToken::new("A"));
    }
}
