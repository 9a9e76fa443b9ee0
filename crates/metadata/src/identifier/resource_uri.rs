//! [`ResourceUri`]: the identifier of a protected resource.

use std::{fmt, hash, sync::Arc};

use url::Url;

use crate::identifier::uri::{self, UriError};

/// The identifier of a protected resource: a URL (RFC 9728 section 1.2, RFC 8707 section 2).
///
/// Two identifiers are equal only if their strings are identical byte for byte. Cloning is cheap.
#[derive(Clone)]
pub struct ResourceUri(Arc<Parts>);

struct Parts {
    text: Box<str>,
    url: Url,
}

/// Why a string is not a valid resource identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceUriError {
    /// It does not parse as an absolute URL.
    #[error("a resource must be an absolute URL: {0}")]
    NotAUrl(url::ParseError),
    /// It does not follow RFC 3986: it has a character outside visible ASCII, a backslash, or no
    /// `//` before the host.
    #[error("a resource must be visible ASCII, with `//` before the host and without backslashes")]
    Irregular,
    /// The scheme is neither `https` nor `http`, or the host is missing.
    #[error("a resource must be an https or http URL with a host")]
    NotHttp,
    /// It has a fragment, which RFC 8707 section 2 does not allow.
    #[error("a resource must not have a fragment")]
    Fragment,
    /// It contains a user name or password.
    #[error("a resource must not contain user information")]
    UserInformation,
}

impl From<UriError> for ResourceUriError {
    fn from(error: UriError) -> Self {
        match error {
            UriError::NotAUrl(error) => Self::NotAUrl(error),
            UriError::Irregular => Self::Irregular,
        }
    }
}

impl ResourceUriError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAUrl(_) => "resource.not_a_url",
            Self::Irregular => "resource.irregular",
            Self::NotHttp => "resource.not_http",
            Self::Fragment => "resource.fragment",
            Self::UserInformation => "resource.user_information",
        }
    }
}

impl ResourceUri {
    /// Parses a resource identifier. The string is kept unchanged.
    ///
    /// Any host is accepted with `http`. The caller decides whether `http` is acceptable.
    ///
    /// # Errors
    /// Fails if the string is not an absolute `http` or `https` URL, or has a fragment or user
    /// information.
    pub fn parse(text: &str) -> Result<Self, ResourceUriError> {
        let url = uri::parse(text)?;
        if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
            return Err(ResourceUriError::NotHttp);
        }
        if url.fragment().is_some() {
            return Err(ResourceUriError::Fragment);
        }
        if uri::has_user_information(text) {
            return Err(ResourceUriError::UserInformation);
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

    /// Returns the parsed URL, for building addresses.
    pub fn url(&self) -> &Url {
        &self.0.url
    }

    /// Returns whether an `aud` entry names this resource. ASCII letter case and one trailing slash
    /// are ignored. Prefixes, the host alone and percent-decoded forms do not match.
    pub fn matches_audience(&self, audience: &str) -> bool {
        without_trailing_slash(self.as_str()).eq_ignore_ascii_case(without_trailing_slash(audience))
    }
}

fn without_trailing_slash(text: &str) -> &str {
    text.strip_suffix('/').unwrap_or(text)
}

impl PartialEq for ResourceUri {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for ResourceUri {}

impl hash::Hash for ResourceUri {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResourceUri").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_resources_are_kept_unchanged() {
        for text in [
            "https://mcp.example",
            "https://MCP.example:443/a/?b=c",
            "http://10.0.0.1/mcp",
        ] {
            assert_eq!(ResourceUri::parse(text).unwrap().as_str(), text);
        }
    }

    /// I1: a resource is an absolute URL without a fragment. URLs that a browser would repair are
    /// rejected.
    #[test]
    fn invalid_resources_are_rejected() {
        for (text, code) in [
            ("", "resource.not_a_url"),
            ("/mcp", "resource.not_a_url"),
            ("https:mcp.example", "resource.irregular"),
            ("https://mcp.example/a b", "resource.irregular"),
            ("urn:example:mcp", "resource.irregular"),
            ("ftp://mcp.example", "resource.not_http"),
            ("https://mcp.example#", "resource.fragment"),
            ("https://mcp.example/a#b", "resource.fragment"),
            ("https://u@mcp.example", "resource.user_information"),
            ("https://@mcp.example", "resource.user_information"),
        ] {
            assert_eq!(
                ResourceUri::parse(text).unwrap_err().code(),
                code,
                "{text:?}"
            );
        }
    }

    proptest! {
        /// C6: letter case and one trailing slash are ignored on both sides. Any other extra
        /// character is not.
        #[test]
        fn only_case_and_one_slash_are_ignored(path in "(/[a-z0-9]{1,5}){0,3}", more in "[ -~]") {
            let plain = format!("https://mcp.example{path}");
            let slashed = format!("{plain}/");
            for resource in [&plain, &slashed] {
                let resource = ResourceUri::parse(resource).unwrap();
                for audience in [&plain, &slashed] {
                    prop_assert!(resource.matches_audience(audience));
                    prop_assert!(resource.matches_audience(&audience.to_uppercase()));
                }
                prop_assert_eq!(resource.matches_audience(&format!("{plain}{more}")), more == "/");
                prop_assert!(!resource.matches_audience(&[more.as_str(), plain.as_str()].concat()));
                prop_assert!(!resource.matches_audience(&plain[..plain.len() - 1]));
            }
        }
    }
}
