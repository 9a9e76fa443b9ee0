use std::{fmt, hash, net::IpAddr, sync::Arc};

use url::{Host, Url};

use crate::identifier::uri::{self, UriError};

/// An authorization server's issuer identifier (RFC 8414 section 2).
///
/// Two issuers are equal only if their strings are identical byte for byte. URLs are not
/// normalized. Cloning is cheap.
#[derive(Clone)]
pub struct Issuer(Arc<Parts>);

struct Parts {
    text: Box<str>,
    url: Url,
}

/// Why a string is not a valid issuer identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssuerError {
    /// It does not parse as an absolute URL.
    #[error("an issuer must be an absolute URL: {0}")]
    NotAUrl(url::ParseError),
    /// It does not follow RFC 3986: it has a character outside visible ASCII, a backslash, or no
    /// `//` before the host.
    #[error("an issuer must be visible ASCII, with `//` before the host and without backslashes")]
    Irregular,
    /// The scheme is not `https`, and not `http` with a loopback host.
    #[error("an issuer must be an https URL, or http on a loopback host")]
    InsecureScheme,
    /// It has a query or a fragment, which RFC 8414 section 2 does not allow.
    #[error("an issuer must not have a query or fragment")]
    QueryOrFragment,
    /// It contains a user name or password.
    #[error("an issuer must not contain user information")]
    UserInformation,
}

impl From<UriError> for IssuerError {
    fn from(error: UriError) -> Self {
        match error {
            UriError::NotAUrl(error) => Self::NotAUrl(error),
            UriError::Irregular => Self::Irregular,
        }
    }
}

impl IssuerError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAUrl(_) => "issuer.not_a_url",
            Self::Irregular => "issuer.irregular",
            Self::InsecureScheme => "issuer.insecure_scheme",
            Self::QueryOrFragment => "issuer.query_or_fragment",
            Self::UserInformation => "issuer.user_information",
        }
    }
}

impl Issuer {
    /// Parses an issuer identifier. The string is kept unchanged.
    ///
    /// # Errors
    /// Fails if the string is not an absolute `https` URL (or `http` with a loopback host), or has
    /// a query, a fragment or user information.
    pub fn parse(text: &str) -> Result<Self, IssuerError> {
        let url = uri::parse(text)?;
        if !is_https_or_loopback_http(&url) {
            return Err(IssuerError::InsecureScheme);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(IssuerError::QueryOrFragment);
        }
        if uri::has_user_information(text) {
            return Err(IssuerError::UserInformation);
        }
        Ok(Self(Arc::new(Parts {
            text: text.into(),
            url,
        })))
    }

    /// Returns the identifier exactly as written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the parsed URL, for building addresses. Do not compare issuers by it.
    pub fn url(&self) -> &Url {
        &self.0.url
    }
}

/// Returns whether a URL is `https`, or `http` to a loopback host (see [`is_loopback`]). Every
/// address that receives tokens or serves keys must satisfy this.
pub fn is_https_or_loopback_http(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Returns whether a URL's host is `localhost`, a subdomain of it, an address in `127.0.0.0/8`, or
/// `[::1]`. Names are not resolved.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}

impl PartialEq for Issuer {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Issuer {}

impl hash::Hash for Issuer {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuer").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_issuers_are_kept_unchanged() {
        for text in [
            "https://as.example",
            "https://as.example/",
            "https://AS.example:443/%41",
            "HTTPS://as.example/a//",
            "http://localhost:9000",
            "http://127.8.9.10/a",
            "http://[::1]:9000/a",
        ] {
            assert_eq!(Issuer::parse(text).unwrap().as_str(), text);
        }
    }

    /// G6: an issuer is https, or http on a loopback host. URLs that a browser would repair are
    /// rejected.
    #[test]
    fn invalid_issuers_are_rejected() {
        for (text, code) in [
            ("", "issuer.not_a_url"),
            ("as.example", "issuer.not_a_url"),
            ("/realms/a", "issuer.not_a_url"),
            ("https://", "issuer.not_a_url"),
            ("https://as.example:99999", "issuer.not_a_url"),
            ("https:as.example", "issuer.irregular"),
            ("https:\\\\as.example", "issuer.irregular"),
            ("https://as.example\n", "issuer.irregular"),
            (" https://as.example", "issuer.irregular"),
            ("https://äs.example", "issuer.irregular"),
            ("http://as.example", "issuer.insecure_scheme"),
            ("http://localhost.evil.example", "issuer.insecure_scheme"),
            ("http://127.0.0.1.evil.example", "issuer.insecure_scheme"),
            ("http://10.0.0.1", "issuer.insecure_scheme"),
            ("http://[::ffff:127.0.0.1]", "issuer.insecure_scheme"),
            ("ftp://as.example", "issuer.insecure_scheme"),
            ("file:///as", "issuer.irregular"),
            ("https://as.example?a", "issuer.query_or_fragment"),
            ("https://as.example/?", "issuer.query_or_fragment"),
            ("https://as.example/#", "issuer.query_or_fragment"),
            ("https://u:p@as.example", "issuer.user_information"),
            ("https://@as.example", "issuer.user_information"),
        ] {
            assert_eq!(Issuer::parse(text).unwrap_err().code(), code, "{text:?}");
        }
    }

    /// C5, G4: issuers are compared byte for byte.
    #[test]
    fn issuers_are_compared_without_normalization() {
        let issuer = Issuer::parse("https://as.example/a").unwrap();
        assert_eq!(issuer, Issuer::parse("https://as.example/a").unwrap());
        for other in [
            "https://as.example/a/",
            "https://AS.example/a",
            "https://as.example:443/a",
            "https://as.example/%61",
        ] {
            assert_ne!(issuer, Issuer::parse(other).unwrap(), "{other}");
        }
    }
}
