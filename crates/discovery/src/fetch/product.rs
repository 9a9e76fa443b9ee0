use std::fmt;

/// The program that sends requests, as its `User-Agent` names it (RFC 9110 section 10.1.5). The
/// default is `portcullis` with the version of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Its name: a token (RFC 9110 section 5.6.2).
    pub name: &'static str,
    /// Its version, also a token.
    pub version: &'static str,
}

impl Default for Product {
    fn default() -> Self {
        Self {
            name: "portcullis",
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// Writes the name, a slash and the version.
impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.version)
    }
}
