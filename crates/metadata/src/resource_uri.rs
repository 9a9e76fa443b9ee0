use std::{fmt, hash, sync::Arc};

use url::Url;

use crate::uri::{self, UriError};

/// The URL of a protected resource (RFC 9728 section 1.2, RFC 8707 section 2). Cheap to clone.
#[derive(Clone)]
pub struct ResourceUri(Arc<Parts>);

struct Parts {
    text: Box<str>,
    url: Url,
}

/// Why a text is no resource identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceUriError {
    /// It does not parse as an absolute URL.
    #[error("a resource is an absolute URL: {0}")]
    NotAUrl(url::ParseError),
    /// It is not written as RFC 3986 writes a URL: in printable ASCII, with `//` before the host and without
    /// backslashes.
    #[error("a resource is written in printable ASCII, with `//` before the host and without backslashes")]
    Irregular,
    /// The scheme is neither `https` nor `http`, or there is no host.
    #[error("a resource is an https or http URL with a host")]
    NotHttp,
    /// It has a fragment (RFC 8707 section 2 allows none).
    #[error("a resource has no fragment")]
    Fragment,
    /// It carries a user name or password.
    #[error("a resource carries no user information")]
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
    /// A stable code for logs and tests.
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
    /// Parses a resource identifier and keeps its text as it is.
    ///
    /// It does not judge whether plain `http` is acceptable: that depends on where the URL came from.
    ///
    /// # Errors
    /// When the text is not an absolute `http` or `https` URL, or has a fragment or user information.
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
        Ok(Self(Arc::new(Parts { text: text.into(), url })))
    }

    /// The identifier exactly as it was written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The parsed form, for building addresses.
    pub fn url(&self) -> &Url {
        &self.0.url
    }

    /// Whether an `aud` entry names this resource: equal but for one trailing slash and ASCII letter
    /// case. No prefix, host-only or decoded form matches.
    pub fn matches_audience(&self, audience: &str) -> bool {
        without_slash(self.as_str()).eq_ignore_ascii_case(without_slash(audience))
    }
}

fn without_slash(text: &str) -> &str {
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
    fn well_formed_resources_keep_their_text() {
        for text in ["https://mcp.example", "https://MCP.example:443/a/?b=c", "http://10.0.0.1/mcp"] {
            assert_eq!(ResourceUri::parse(text).unwrap().as_str(), text);
        }
    }

    /// I1: absolute, without a fragment, and nothing that needs repair.
    #[test]
    fn others_are_refused() {
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
            assert_eq!(ResourceUri::parse(text).unwrap_err().code(), code, "{text:?}");
        }
    }

    proptest! {
        /// C6: letter case and one trailing slash do not count, on either side; one more character does.
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
