use std::fmt;

use zeroize::Zeroizing;

use crate::constant_time;

/// A bearer access token (RFC 6750): never printed, wiped from memory when dropped, compared in constant
/// time.
///
/// It has no `Display` and no `Serialize`; `Debug` prints `AccessToken([redacted])`. Nothing is checked
/// beyond what the type says: the text may be a JWT, an opaque string or rubbish.
#[derive(Clone)]
pub struct AccessToken(Zeroizing<Box<str>>);

impl AccessToken {
    /// Takes the token's text as it is.
    pub fn new(token: impl Into<Box<str>>) -> Self {
        Self(Zeroizing::new(token.into()))
    }

    /// The token itself. Keep it out of logs, errors and URLs.
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

    /// J2, J3: Debug never shows it.
    #[test]
    fn debug_is_redacted() {
        assert_eq!(format!("{:?}", AccessToken::new("hush")), "AccessToken([redacted])");
    }

    #[test]
    fn equality_is_that_of_the_texts() {
        assert_eq!(AccessToken::new("a"), AccessToken::new(String::from("a")));
        assert_ne!(AccessToken::new("a"), AccessToken::new("A"));
    }
}
