//! [`RedirectUri`]: a redirect URI and its matching rule.

use std::sync::Arc;

use portcullis_metadata::syntax::is_https_or_loopback_http;
use url::{Url, form_urlencoded};

/// A redirect URI, which is kept as written. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectUri(Arc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    text: Box<str>,
    url: Url,
}

/// Why a redirect URI is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.description())]
#[non_exhaustive]
pub enum RedirectUriError {
    /// It is not a URL, is too long, or has other characters than visible ASCII.
    NotAUrl,
    /// It is neither `https` nor `http` with a loopback host.
    NeitherHttpsNorLoopback,
    /// Its scheme runs a script or reads a local document.
    ForbiddenScheme,
    /// It has a fragment (RFC 6749 section 3.1.2).
    Fragment,
    /// It has a user name or a password.
    UserInformation,
}

impl RedirectUriError {
    /// Returns what a redirect URI must be, as a sentence without a capital letter.
    pub const fn description(self) -> &'static str {
        match self {
            Self::NotAUrl => {
                "a redirect URI must be an absolute URL of at most 2048 visible ASCII characters without backslashes"
            }
            Self::NeitherHttpsNorLoopback => {
                "a redirect URI must be https, or http on a loopback host"
            }
            Self::ForbiddenScheme => {
                "a redirect URI must not have the scheme javascript, data, vbscript, file, blob or about"
            }
            Self::Fragment => "a redirect URI must not have a fragment",
            Self::UserInformation => "a redirect URI must not contain user information",
        }
    }
}

const MAX_LENGTH: usize = 2048;
const FORBIDDEN_SCHEMES: [&str; 6] = ["javascript", "data", "vbscript", "file", "blob", "about"];

impl RedirectUri {
    /// Parses a redirect URI of a server that accepts only `https`, and `http` with a loopback
    /// host. The string is kept unchanged.
    ///
    /// # Errors
    /// Fails when it is neither, or has a fragment, user information, or characters that parsers
    /// read differently.
    pub fn parse(text: &str) -> Result<Self, RedirectUriError> {
        let url = parse_url(text)?;
        if !is_https_or_loopback_http(&url) {
            return Err(RedirectUriError::NeitherHttpsNorLoopback);
        }
        Self::new(text, url)
    }

    /// Parses a redirect URI as a client may register it with a server that decides later, by its
    /// [`RedirectPolicy`](crate::client::RedirectPolicy), which registered URIs can be used. Also
    /// private-use schemes (RFC 8252 section 7.1) are accepted, and `http` with any host.
    ///
    /// # Errors
    /// Fails when its scheme runs a script or reads a local document, and when it has a fragment,
    /// user information, or characters that parsers read differently.
    pub fn parse_registered(text: &str) -> Result<Self, RedirectUriError> {
        let url = parse_url(text)?;
        if FORBIDDEN_SCHEMES.contains(&url.scheme()) {
            return Err(RedirectUriError::ForbiddenScheme);
        }
        Self::new(text, url)
    }

    fn new(text: &str, url: Url) -> Result<Self, RedirectUriError> {
        if url.fragment().is_some() {
            return Err(RedirectUriError::Fragment);
        }
        if has_user_information(text, &url) {
            return Err(RedirectUriError::UserInformation);
        }
        Ok(Self(Arc::new(Parts {
            text: text.into(),
            url,
        })))
    }

    /// Matches the `requested` redirect URI with this registered one, and returns it if it matches.
    ///
    /// The strings must be identical, except for the port of an `http` URL with a loopback host,
    /// which a native application gets from the operating system (RFC 8252 section 7.3, RFC 9700
    /// section 4.1.3). Hosts are compared as strings: `localhost` does not match `127.0.0.1`.
    pub fn match_requested(&self, requested: &str) -> Option<Self> {
        if *self.0.text == *requested {
            return Some(self.clone());
        }
        let requested = Self::parse(requested).ok()?;
        let same = self.without_loopback_port()? == requested.without_loopback_port()?;
        same.then_some(requested)
    }

    /// Returns the redirect URI as written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the parsed URL. It must not be compared, because parsing normalizes.
    pub fn url(&self) -> &Url {
        &self.0.url
    }

    /// Returns the scheme in lower case.
    pub fn scheme(&self) -> &str {
        self.0.url.scheme()
    }

    /// Returns the host and the port, if any, to display to the user. The host of an `http` or
    /// `https` URL is in its ASCII form. Empty if the URL has none, as `com.example.app:/callback`.
    pub fn authority(&self) -> &str {
        self.0.url.authority()
    }

    /// Returns whether this is an `http` or `https` URL with a loopback host.
    pub fn is_loopback(&self) -> bool {
        matches!(self.scheme(), "http" | "https")
            && portcullis_metadata::syntax::is_loopback(&self.0.url)
    }

    /// Returns whether only a program on the user's device can receive the response: the scheme is
    /// neither `https`, nor `http` with another host than a loopback host (RFC 8252 section 7).
    pub fn is_native(&self) -> bool {
        match self.scheme() {
            "https" => false,
            "http" => self.is_loopback(),
            _ => true,
        }
    }

    /// Returns the redirect URI with parameters appended to its query.
    pub fn with_params<'a>(
        &self,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        let separator = match self.0.text.split_once('?') {
            None => "?",
            Some((_, "")) => "",
            Some(_) => "&",
        };
        format!("{}{separator}{query}", self.0.text)
    }

    /// Returns the parts before and after the port of an `http` URL.
    fn without_loopback_port(&self) -> Option<(&str, &str)> {
        let host = self
            .0
            .url
            .host_str()
            .filter(|_| self.0.url.scheme() == "http")?;
        let (origin, rest) = self.0.text.split_at_checked("http://".len() + host.len())?;
        if origin.strip_prefix("http://") != Some(host) {
            return None;
        }
        let rest = match rest.strip_prefix(':') {
            Some(port) => port.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => rest,
        };
        Some((origin, rest))
    }
}

fn parse_url(text: &str) -> Result<Url, RedirectUriError> {
    // URL parsers disagree on where the host ends if there is a backslash.
    let is_printable = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if text.len() > MAX_LENGTH || !is_printable {
        return Err(RedirectUriError::NotAUrl);
    }
    let url = Url::parse(text).map_err(|_| RedirectUriError::NotAUrl)?;
    // A browser that is redirected to `https:client.example` reads it as a relative URL.
    if url.has_host() && url.is_special() && !has_two_slashes(text) {
        return Err(RedirectUriError::NotAUrl);
    }
    Ok(url)
}

/// Returns whether exactly two slashes follow the scheme.
fn has_two_slashes(text: &str) -> bool {
    text.split_once(':')
        .and_then(|(_, rest)| rest.strip_prefix("//"))
        .is_some_and(|rest| !rest.starts_with('/'))
}

/// Returns whether the authority has an `@`, also with an empty name, which parsers drop.
fn has_user_information(text: &str, url: &Url) -> bool {
    let rest = text.get(url.scheme().len()..).unwrap_or_default();
    rest.strip_prefix("://").is_some_and(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.contains('@')
    })
}

#[cfg(test)]
mod tests;
