use std::fmt;

use zeroize::Zeroizing;

/// A bearer access token (RFC 6750): never printed, wiped from memory when dropped.
///
/// It has no `Display` and no `Serialize`; `Debug` prints `AccessToken([redacted])`. Nothing is checked
/// beyond what the type says: the text may be a JWT, an opaque string or rubbish.
#[derive(Clone, PartialEq, Eq)]
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

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken([redacted])")
    }
}
