//! [`RedirectUri`]: a redirect URI and its matching rule.

use std::sync::Arc;

use portcullis_metadata::syntax::is_https_or_loopback_http;
use url::{Url, form_urlencoded};

/// A redirect URI: `https`, or `http` with a loopback host. Cloning is cheap.
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
                "a redirect URI must be an absolute URL of at most 2000 visible ASCII characters without backslashes"
            }
            Self::NeitherHttpsNorLoopback => {
                "a redirect URI must be https, or http on a loopback host"
            }
            Self::Fragment => "a redirect URI must not have a fragment",
            Self::UserInformation => "a redirect URI must not contain user information",
        }
    }
}

const MAX_LENGTH: usize = 2000;

impl RedirectUri {
    /// Parses a redirect URI. The string is kept unchanged.
    ///
    /// # Errors
    /// Fails when it is neither `https` nor `http` with a loopback host, or has a fragment, user
    /// information, or characters that parsers read differently.
    pub fn parse(text: &str) -> Result<Self, RedirectUriError> {
        // URL parsers disagree on where the host ends if there is a backslash.
        let is_printable = text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if text.len() > MAX_LENGTH || !is_printable {
            return Err(RedirectUriError::NotAUrl);
        }
        let url = Url::parse(text).map_err(|_| RedirectUriError::NotAUrl)?;
        if !is_https_or_loopback_http(&url) {
            return Err(RedirectUriError::NeitherHttpsNorLoopback);
        }
        if url.fragment().is_some() {
            return Err(RedirectUriError::Fragment);
        }
        if !url.username().is_empty() || url.password().is_some() {
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

    /// Returns the host and the port, if any, to display to the user.
    pub fn authority(&self) -> &str {
        self.0.url.authority()
    }

    /// Returns whether the host is a loopback host.
    pub fn is_loopback(&self) -> bool {
        portcullis_metadata::syntax::is_loopback(&self.0.url)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn match_requested(registered: &str, requested: &str) -> bool {
        RedirectUri::parse(registered)
            .unwrap()
            .match_requested(requested)
            .is_some()
    }

    /// Only https URLs and loopback URLs are accepted.
    #[test]
    fn only_https_and_loopback_are_accepted() {
        for valid in [
            "https://client.example/callback",
            "https://client.example:8443/callback?a=b",
            "http://127.0.0.1:4321/callback",
            "http://127.0.0.1/callback",
            "http://[::1]:4321/",
            "http://localhost:4321/callback",
        ] {
            assert_eq!(
                RedirectUri::parse(valid).map(|uri| uri.as_str().to_owned()),
                Ok(valid.to_owned())
            );
        }
        for (invalid, error) in [
            ("", RedirectUriError::NotAUrl),
            ("/callback", RedirectUriError::NotAUrl),
            (
                "https://client.example/call back",
                RedirectUriError::NotAUrl,
            ),
            (
                "https://client.example/\r\nSet-Cookie:a=b",
                RedirectUriError::NotAUrl,
            ),
            (
                "http://127.0.0.1\\@client.example/",
                RedirectUriError::NotAUrl,
            ),
            (
                "http://client.example/callback",
                RedirectUriError::NeitherHttpsNorLoopback,
            ),
            (
                "http://127.0.0.1.client.example/",
                RedirectUriError::NeitherHttpsNorLoopback,
            ),
            (
                "javascript:alert(1)",
                RedirectUriError::NeitherHttpsNorLoopback,
            ),
            (
                "com.example.app:/callback",
                RedirectUriError::NeitherHttpsNorLoopback,
            ),
            (
                "data:text/html,hello",
                RedirectUriError::NeitherHttpsNorLoopback,
            ),
            ("https://client.example/#part", RedirectUriError::Fragment),
            ("https://client.example/#", RedirectUriError::Fragment),
            (
                "https://a:b@client.example/",
                RedirectUriError::UserInformation,
            ),
            (
                "http://client.example@127.0.0.1/",
                RedirectUriError::UserInformation,
            ),
        ] {
            assert_eq!(RedirectUri::parse(invalid), Err(error), "{invalid}");
        }
        assert!(
            RedirectUri::parse(&format!("https://client.example/{}", "a".repeat(2000))).is_err()
        );
    }

    /// The strings must be identical, except for the port of a loopback host.
    #[test]
    fn only_the_loopback_port_may_differ() {
        assert!(match_requested(
            "https://client.example/callback",
            "https://client.example/callback"
        ));
        assert!(match_requested(
            "http://127.0.0.1/callback",
            "http://127.0.0.1:4321/callback"
        ));
        assert!(match_requested(
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1:4321/callback"
        ));
        assert!(match_requested(
            "http://[::1]:1/callback",
            "http://[::1]:4321/callback"
        ));
        assert!(match_requested(
            "http://localhost:1/callback",
            "http://localhost:4321/callback"
        ));

        for (registered, requested) in [
            (
                "https://client.example/callback",
                "https://client.example/callback/",
            ),
            (
                "https://client.example/callback",
                "https://client.example/callback?a=b",
            ),
            (
                "https://client.example/callback",
                "https://client.example:8443/callback",
            ),
            (
                "https://client.example/callback",
                "https://client.example:443/callback",
            ),
            (
                "https://client.example/callback",
                "https://CLIENT.example/callback",
            ),
            (
                "https://client.example/callback",
                "https://client.example/other/../callback",
            ),
            (
                "https://127.0.0.1:1/callback",
                "https://127.0.0.1:2/callback",
            ),
            ("http://127.0.0.1:1/callback", "http://localhost:1/callback"),
            ("http://127.0.0.1:1/callback", "http://127.0.0.2:1/callback"),
            ("http://127.0.0.1:1/callback", "http://127.1:1/callback"),
            (
                "http://127.0.0.1:1/callback",
                "http://127.0.0.1:1/callback2",
            ),
            (
                "http://127.0.0.1:1/callback",
                "http://127.0.0.1:1/x/../callback",
            ),
            (
                "http://127.0.0.1:1/callback",
                "http://127.0.0.1:1:2/callback",
            ),
            (
                "http://127.0.0.1:1/callback",
                "http://127.0.0.1:1@client.example/callback",
            ),
            (
                "http://127.0.0.1:1/callback",
                "http://127.0.0.1.client.example/callback",
            ),
            (
                "http://localhost:1/callback",
                "http://localhost.localhost:1/callback",
            ),
        ] {
            assert!(
                !match_requested(registered, requested),
                "{registered} {requested}"
            );
        }
    }

    #[test]
    fn parameters_are_appended_to_the_query() {
        let with = |uri: &str| {
            RedirectUri::parse(uri)
                .unwrap()
                .with_params([("code", "a b"), ("iss", "http://x")])
        };
        let query = "code=a+b&iss=http%3A%2F%2Fx";
        assert_eq!(
            with("https://c.example/cb"),
            format!("https://c.example/cb?{query}")
        );
        assert_eq!(
            with("https://c.example/cb?"),
            format!("https://c.example/cb?{query}")
        );
        assert_eq!(
            with("https://c.example/cb?a=b"),
            format!("https://c.example/cb?a=b&{query}")
        );
    }

    proptest! {
        #[test]
        fn appended_parameters_keep_the_query(state in ".*", path in "[a-z/?=&%]{0,20}") {
            let uri = RedirectUri::parse(&format!("http://127.0.0.1:1/{path}")).unwrap();
            let before: Vec<_> = uri.0.url.query_pairs().into_owned().collect();
            let url = Url::parse(&uri.with_params([("state", &*state)])).unwrap();
            let mut after: Vec<_> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(after.pop(), Some(("state".to_owned(), state)));
            prop_assert_eq!(after, before);
            prop_assert_eq!(url.authority(), "127.0.0.1:1");
        }

        #[test]
        fn random_strings_do_not_panic(registered in "http://(127.0.0.1|localhost|\\[::1\\])[:0-9a-z/?@]{0,12}", requested in ".*") {
            if let Ok(registered) = RedirectUri::parse(&registered) {
                let _ = registered.match_requested(&requested);
            }
        }
    }
}
