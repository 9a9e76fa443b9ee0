use std::fmt;

use zeroize::Zeroizing;

use crate::constant_time;

/// A secret text: a client secret, an authorization code, a refresh token. Never printed, wiped from
/// memory when dropped, compared in constant time.
///
/// It has no `Display` and no `Serialize`; `Debug` prints `Secret([redacted])`.
#[derive(Clone)]
pub struct Secret(Zeroizing<Box<str>>);

impl Secret {
    /// Takes the secret's text as it is.
    pub fn new(secret: impl Into<Box<str>>) -> Self {
        Self(Zeroizing::new(secret.into()))
    }

    /// The secret itself. Keep it out of logs, errors and URLs.
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

    /// J3: Debug never shows it.
    #[test]
    fn debug_is_redacted() {
        assert_eq!(format!("{:?}", Secret::new("hush")), "Secret([redacted])");
    }

    #[test]
    fn equality_is_that_of_the_texts() {
        assert_eq!(Secret::new("a"), Secret::new("a"));
        assert_ne!(Secret::new("a"), Secret::new("b"));
        assert_ne!(Secret::new("a"), Secret::new("ab"));
    }
}
