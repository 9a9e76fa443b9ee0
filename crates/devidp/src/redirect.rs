use std::sync::Arc;

use portcullis_metadata::is_https_or_loopback_http;
use url::{Url, form_urlencoded};

/// A redirect URI that codes may be sent to: `https`, or `http` to a loopback host. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedirectUri(Arc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    text: Box<str>,
    url: Url,
}

/// Why a text is no redirect URI that can be registered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectUriError {
    NotAUrl,
    NeitherHttpsNorLoopback,
    Fragment,
    UserInformation,
}

impl RedirectUriError {
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::NotAUrl => {
                "a redirect URI is an absolute URL of at most 2000 visible ASCII characters without backslash"
            }
            Self::NeitherHttpsNorLoopback => "a redirect URI is https, or http on a loopback host",
            Self::Fragment => "a redirect URI has no fragment",
            Self::UserInformation => "a redirect URI carries no user information",
        }
    }
}

const MAX_LENGTH: usize = 2000;

impl RedirectUri {
    /// Parses a redirect URI and keeps its text as it is.
    pub(crate) fn parse(text: &str) -> Result<Self, RedirectUriError> {
        // Parsers disagree about where the host ends when there is a backslash.
        let readable = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if text.len() > MAX_LENGTH || !readable {
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
        Ok(Self(Arc::new(Parts { text: text.into(), url })))
    }

    /// The redirect URI to use when this one is registered and `asked` stands in the request: `asked` itself,
    /// where it is the same text, or the same but for the port of an `http` loopback host, which a native
    /// application takes from the operating system (RFC 8252 section 7.3, RFC 9700 section 4.1.3). The host is
    /// compared as text: `localhost` is not `127.0.0.1`.
    pub(crate) fn admits(&self, asked: &str) -> Option<Self> {
        if *self.0.text == *asked {
            return Some(self.clone());
        }
        let asked = Self::parse(asked).ok()?;
        let same = self.without_loopback_port()? == asked.without_loopback_port()?;
        same.then_some(asked)
    }

    /// The text as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Host and, where there is one, port: what a person can judge the redirect by.
    pub(crate) fn authority(&self) -> &str {
        self.0.url.authority()
    }

    /// Whether it leads to this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        portcullis_metadata::is_loopback(&self.0.url)
    }

    /// The address to redirect to, with these parameters added to its query.
    pub(crate) fn with<'a>(&self, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        let separator = match self.0.text.split_once('?') {
            None => "?",
            Some((_, "")) => "",
            Some(_) => "&",
        };
        format!("{}{separator}{query}", self.0.text)
    }

    /// The text around the port of an `http` loopback URL: its scheme and host, and what follows the port.
    fn without_loopback_port(&self) -> Option<(&str, &str)> {
        let host = self.0.url.host_str().filter(|_| self.0.url.scheme() == "http")?;
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

    fn admits(registered: &str, asked: &str) -> bool {
        RedirectUri::parse(registered).unwrap().admits(asked).is_some()
    }

    /// Open registration takes https and loopback redirects only.
    #[test]
    fn what_can_be_registered() {
        for good in [
            "https://client.example/callback",
            "https://client.example:8443/callback?a=b",
            "http://127.0.0.1:4321/callback",
            "http://127.0.0.1/callback",
            "http://[::1]:4321/",
            "http://localhost:4321/callback",
        ] {
            assert_eq!(RedirectUri::parse(good).map(|uri| uri.as_str().to_owned()), Ok(good.to_owned()));
        }
        for (bad, why) in [
            ("", RedirectUriError::NotAUrl),
            ("/callback", RedirectUriError::NotAUrl),
            ("https://client.example/call back", RedirectUriError::NotAUrl),
            ("https://client.example/\r\nSet-Cookie:a=b", RedirectUriError::NotAUrl),
            ("http://127.0.0.1\\@client.example/", RedirectUriError::NotAUrl),
            ("http://client.example/callback", RedirectUriError::NeitherHttpsNorLoopback),
            ("http://127.0.0.1.client.example/", RedirectUriError::NeitherHttpsNorLoopback),
            ("javascript:alert(1)", RedirectUriError::NeitherHttpsNorLoopback),
            ("com.example.app:/callback", RedirectUriError::NeitherHttpsNorLoopback),
            ("data:text/html,hello", RedirectUriError::NeitherHttpsNorLoopback),
            ("https://client.example/#part", RedirectUriError::Fragment),
            ("https://client.example/#", RedirectUriError::Fragment),
            ("https://a:b@client.example/", RedirectUriError::UserInformation),
            ("http://client.example@127.0.0.1/", RedirectUriError::UserInformation),
        ] {
            assert_eq!(RedirectUri::parse(bad), Err(why), "{bad}");
        }
        assert!(RedirectUri::parse(&format!("https://client.example/{}", "a".repeat(2000))).is_err());
    }

    /// The redirect matches exactly, but for the port of a loopback host.
    #[test]
    fn what_matches() {
        assert!(admits("https://client.example/callback", "https://client.example/callback"));
        assert!(admits("http://127.0.0.1/callback", "http://127.0.0.1:4321/callback"));
        assert!(admits("http://127.0.0.1:1/callback", "http://127.0.0.1:4321/callback"));
        assert!(admits("http://[::1]:1/callback", "http://[::1]:4321/callback"));
        assert!(admits("http://localhost:1/callback", "http://localhost:4321/callback"));
        for (registered, asked) in [
            ("https://client.example/callback", "https://client.example/callback/"),
            ("https://client.example/callback", "https://client.example/callback?a=b"),
            ("https://client.example/callback", "https://client.example:8443/callback"),
            ("https://client.example/callback", "https://client.example:443/callback"),
            ("https://client.example/callback", "https://CLIENT.example/callback"),
            ("https://client.example/callback", "https://client.example/other/../callback"),
            ("https://127.0.0.1:1/callback", "https://127.0.0.1:2/callback"),
            ("http://127.0.0.1:1/callback", "http://localhost:1/callback"),
            ("http://127.0.0.1:1/callback", "http://127.0.0.2:1/callback"),
            ("http://127.0.0.1:1/callback", "http://127.1:1/callback"),
            ("http://127.0.0.1:1/callback", "http://127.0.0.1:1/callback2"),
            ("http://127.0.0.1:1/callback", "http://127.0.0.1:1/x/../callback"),
            ("http://127.0.0.1:1/callback", "http://127.0.0.1:1:2/callback"),
            ("http://127.0.0.1:1/callback", "http://127.0.0.1:1@client.example/callback"),
            ("http://127.0.0.1:1/callback", "http://127.0.0.1.client.example/callback"),
            ("http://localhost:1/callback", "http://localhost.localhost:1/callback"),
        ] {
            assert!(!admits(registered, asked), "{registered} {asked}");
        }
    }

    #[test]
    fn parameters_join_the_query_that_is_there() {
        let with = |uri: &str| RedirectUri::parse(uri).unwrap().with([("code", "a b"), ("iss", "http://x")]);
        let query = "code=a+b&iss=http%3A%2F%2Fx";
        assert_eq!(with("https://c.example/cb"), format!("https://c.example/cb?{query}"));
        assert_eq!(with("https://c.example/cb?"), format!("https://c.example/cb?{query}"));
        assert_eq!(with("https://c.example/cb?a=b"), format!("https://c.example/cb?a=b&{query}"));
    }

    proptest! {
        #[test]
        fn added_parameters_read_back_and_leave_the_rest(state in ".*", path in "[a-z/?=&%]{0,20}") {
            let uri = RedirectUri::parse(&format!("http://127.0.0.1:1/{path}")).unwrap();
            let before: Vec<_> = uri.0.url.query_pairs().into_owned().collect();
            let url = Url::parse(&uri.with([("state", &*state)])).unwrap();
            let mut after: Vec<_> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(after.pop(), Some(("state".to_owned(), state)));
            prop_assert_eq!(after, before);
            prop_assert_eq!(url.authority(), "127.0.0.1:1");
        }

        #[test]
        fn no_text_panics(registered in "http://(127.0.0.1|localhost|\\[::1\\])[:0-9a-z/?@]{0,12}", asked in ".*") {
            if let Ok(registered) = RedirectUri::parse(&registered) {
                let _ = registered.admits(&asked);
            }
        }
    }
}
