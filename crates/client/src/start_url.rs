//! [`StartUrl`]: the URL of a protected resource.

use std::fmt;

use portcullis_metadata::{
    ResourceUri,
    syntax::{is_https_or_loopback_http, is_loopback, url_without_secrets},
};
use url::Url;

/// The URL of a protected resource that a user enters: `https`, or `http` to a loopback host, so
/// that a token can be sent there. The fragment is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartUrl(Url);

/// Why a URL is not a start URL. No request was sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartUrlError {
    /// It does not parse as an absolute URL.
    #[error("the address is not an absolute URL: {0}")]
    NotAUrl(url::ParseError),
    /// Neither `https`, nor `http` to a loopback host.
    #[error(
        "the address is neither https nor http to this machine; a token would be sent unencrypted"
    )]
    Insecure,
    /// It contains a user name or password.
    #[error("the address contains a user name or password")]
    UserInformation,
}

impl StartUrlError {
    /// The stable code, for logs and tests.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotAUrl(_) => "start_url.not_a_url",
            Self::Insecure => "start_url.insecure",
            Self::UserInformation => "start_url.user_information",
        }
    }
}

impl StartUrl {
    /// Parses the user's input.
    ///
    /// # Errors
    /// When a token must not be sent there.
    pub fn parse(text: &str) -> Result<Self, StartUrlError> {
        Url::parse(text)
            .map_err(StartUrlError::NotAUrl)
            .and_then(Self::new)
    }

    /// Validates a parsed URL.
    ///
    /// # Errors
    /// When a token must not be sent there.
    pub fn new(mut url: Url) -> Result<Self, StartUrlError> {
        if !is_https_or_loopback_http(&url) {
            return Err(StartUrlError::Insecure);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(StartUrlError::UserInformation);
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// The URL as the identifier of a resource, if it can be one (RFC 8707 section 2).
    pub(crate) fn resource(&self) -> Option<ResourceUri> {
        ResourceUri::parse(self.0.as_str()).ok()
    }

    /// Whether its host is this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }
}

/// The URL without its query, which may hold a secret.
impl fmt::Display for StartUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(url_without_secrets(&self.0).as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2: the query is not shown.
    #[test]
    fn a_query_is_not_shown() {
        let start = StartUrl::parse("https://mcp.example.com/mcp?key=hush#x").unwrap();
        assert_eq!(start.to_string(), "https://mcp.example.com/mcp");
    }

    /// I9: only https and loopback http URLs are start URLs.
    #[test]
    fn a_token_is_never_sent_unencrypted() {
        for url in [
            "https://mcp.example.com/mcp#x",
            "http://127.0.0.1:3000/mcp",
            "http://localhost/mcp",
            "http://[::1]/",
        ] {
            assert!(
                StartUrl::parse(url).unwrap().url().fragment().is_none(),
                "{url}"
            );
        }
        for (url, code) in [
            ("http://mcp.example.com/mcp", "start_url.insecure"),
            ("http://127.0.0.1.evil.example/", "start_url.insecure"),
            ("http://10.0.0.1/", "start_url.insecure"),
            ("ftp://localhost/", "start_url.insecure"),
            ("file:///etc/passwd", "start_url.insecure"),
            (
                "https://user@mcp.example.com/",
                "start_url.user_information",
            ),
            ("mcp.example.com/mcp", "start_url.not_a_url"),
        ] {
            assert_eq!(StartUrl::parse(url).unwrap_err().code(), code, "{url}");
        }
    }
}
