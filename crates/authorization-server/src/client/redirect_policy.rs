//! [`RedirectPolicy`]: which registered redirect URIs can be used.

use url::Host;

use crate::client::{RedirectUri, known::is_known_redirect};

/// Decides which registered redirect URIs can be used. A client whose URIs are only partly usable
/// can sign users in with the others.
pub trait RedirectPolicy: Send + Sync {
    /// Returns whether authorization responses may be sent to this URI.
    fn is_usable(&self, uri: &RedirectUri) -> bool;
}

/// A policy with a list of hosts: usable are `http` on `127.0.0.1`, `[::1]` and `localhost`,
/// `https` on a listed host, and the [redirect URIs of known
/// clients](crate::client::KNOWN_REDIRECTS).
#[derive(Clone, Debug, Default)]
pub struct RedirectHosts {
    hosts: Box<[RedirectHost]>,
}

/// Hosts of `https` redirect URIs: a name, or `*.` and a name for its subdomains only. The port
/// must be 443, unless `:` and another port follow the name.
///
/// ```
/// use portcullis_authorization_server::client::{
///     RedirectHost, RedirectHosts, RedirectPolicy, RedirectUri,
/// };
///
/// let hosts = RedirectHosts::new([RedirectHost::parse("*.example.com")?]);
/// let uri = |text| RedirectUri::parse_registered(text);
/// assert!(hosts.is_usable(&uri("https://chat.example.com/callback")?));
/// assert!(!hosts.is_usable(&uri("https://example.com/callback")?));
/// assert!(!hosts.is_usable(&uri("https://chat.example.com.attacker.example/callback")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectHost {
    /// In the ASCII form of IDNA.
    name: Box<str>,
    /// Whether the subdomains are meant, and not the name itself.
    is_wildcard: bool,
    port: u16,
}

/// Why an entry of a list of redirect hosts is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectHostError {
    /// It is not the name of a host.
    #[error(
        "a redirect host must be a host name, or `*.` and a host name, without a scheme and a path"
    )]
    NotAName,
    /// What follows the colon is not a port.
    #[error("the port of a redirect host must be a number from 1 to 65535")]
    Port,
    /// It has a wildcard for a whole top-level domain.
    #[error("a redirect host with a wildcard must name at least two labels after `*.`")]
    TooBroad,
}

impl RedirectHostError {
    /// Returns a stable code for logs and tests.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotAName => "redirect_host.not_a_name",
            Self::Port => "redirect_host.port",
            Self::TooBroad => "redirect_host.too_broad",
        }
    }
}

const HTTPS_PORT: u16 = 443;

impl RedirectHosts {
    /// Creates the policy for these hosts. Without hosts, only loopback URIs and those of known
    /// clients are usable.
    pub fn new(hosts: impl IntoIterator<Item = RedirectHost>) -> Self {
        Self {
            hosts: hosts.into_iter().collect(),
        }
    }
}

impl RedirectPolicy for RedirectHosts {
    fn is_usable(&self, uri: &RedirectUri) -> bool {
        match uri.scheme() {
            "http" => is_usable_loopback(uri),
            "https" => {
                self.hosts.iter().any(|host| host.matches(uri)) || is_known_redirect(uri.as_str())
            }
            _ => is_known_redirect(uri.as_str()),
        }
    }
}

impl RedirectHost {
    /// Parses an entry. International names can be written in either form.
    ///
    /// # Errors
    /// Fails when it is not a name with an optional `*.` before and an optional port after it. IP
    /// addresses are not names.
    pub fn parse(text: &str) -> Result<Self, RedirectHostError> {
        let (is_wildcard, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, parse_port(port).ok_or(RedirectHostError::Port)?),
            None => (rest, HTTPS_PORT),
        };
        let Ok(Host::Domain(name)) = Host::parse(name) else {
            return Err(RedirectHostError::NotAName);
        };
        let is_name = name.split('.').all(is_label);
        if !is_name {
            return Err(RedirectHostError::NotAName);
        }
        if is_wildcard && !name.contains('.') {
            return Err(RedirectHostError::TooBroad);
        }
        Ok(Self {
            name: name.into(),
            is_wildcard,
            port,
        })
    }

    fn matches(&self, uri: &RedirectUri) -> bool {
        let url = uri.url();
        let Some(Host::Domain(host)) = url.host() else {
            return false;
        };
        let is_name = if self.is_wildcard {
            host.strip_suffix(&*self.name)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|subdomain| !subdomain.is_empty())
        } else {
            host == &*self.name
        };
        is_name && url.port_or_known_default() == Some(self.port)
    }
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn parse_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port != 0)
}

/// Returns whether an `http` URL has one of the hosts of RFC 8252 section 7.3.
fn is_usable_loopback(uri: &RedirectUri) -> bool {
    matches!(
        uri.url().host_str(),
        Some("127.0.0.1" | "[::1]" | "localhost")
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy(hosts: &[&str]) -> RedirectHosts {
        RedirectHosts::new(hosts.iter().map(|host| RedirectHost::parse(host).unwrap()))
    }

    fn is_usable(policy: &RedirectHosts, uri: &str) -> bool {
        policy.is_usable(&RedirectUri::parse_registered(uri).unwrap())
    }

    #[test]
    fn listed_hosts_are_usable_and_similar_ones_are_not() {
        let policy = policy(&[
            "chat.example",
            "*.apps.example",
            "port.example:8443",
            "bücher.example",
        ]);
        for (uri, expected) in [
            ("https://chat.example/callback", true),
            ("https://CHAT.example/callback?a=b", true),
            ("https://chat.example:443/callback", true),
            ("https://chat.example:8443/callback", false),
            ("http://chat.example/callback", false),
            ("https://chat.example./callback", false),
            ("https://chat.example.attacker.example/callback", false),
            ("https://attacker-chat.example/callback", false),
            ("https://sub.chat.example/callback", false),
            ("https://attacker.example/chat.example", false),
            ("https://a.apps.example/", true),
            ("https://a.b.apps.example/", true),
            ("https://apps.example/", false),
            ("https://.apps.example/", false),
            ("https://aapps.example/", false),
            ("https://port.example:8443/", true),
            ("https://port.example/", false),
            ("https://xn--bcher-kva.example/", true),
            ("https://bucher.example/", false),
            ("chat.example:/callback", false),
            ("cursor://chat.example/callback", false),
            ("ftp://chat.example/callback", false),
        ] {
            assert_eq!(is_usable(&policy, uri), expected, "{uri}");
        }
    }

    #[test]
    fn loopback_is_usable_with_http_and_three_hosts_only() {
        let policy = RedirectHosts::default();
        for (uri, expected) in [
            ("http://127.0.0.1/callback", true),
            ("http://127.0.0.1:4321/callback", true),
            ("http://[::1]:4321/callback", true),
            ("http://localhost:4321/callback", true),
            ("http://127.0.0.2/callback", false),
            ("http://app.localhost/callback", false),
            ("http://localhost.attacker.example/callback", false),
            ("http://10.0.0.1/callback", false),
            ("https://localhost/callback", false),
            ("cursor://localhost/callback", false),
        ] {
            assert_eq!(is_usable(&policy, uri), expected, "{uri}");
        }
    }

    #[test]
    fn entries_that_are_not_hosts_are_rejected() {
        for (entry, error) in [
            ("", RedirectHostError::NotAName),
            ("https://chat.example", RedirectHostError::Port),
            ("chat.example/", RedirectHostError::NotAName),
            ("chat.example/callback", RedirectHostError::NotAName),
            ("*", RedirectHostError::NotAName),
            ("*chat.example", RedirectHostError::NotAName),
            ("chat.*.example", RedirectHostError::NotAName),
            ("*.*.example", RedirectHostError::NotAName),
            ("user@chat.example", RedirectHostError::NotAName),
            ("chat.example.", RedirectHostError::NotAName),
            ("chat..example", RedirectHostError::NotAName),
            ("chat.example ", RedirectHostError::NotAName),
            ("10.0.0.1", RedirectHostError::NotAName),
            ("[::1]", RedirectHostError::Port),
            ("chat.example:", RedirectHostError::Port),
            ("chat.example:0", RedirectHostError::Port),
            ("chat.example:+1", RedirectHostError::Port),
            ("chat.example:65536", RedirectHostError::Port),
            ("*.example", RedirectHostError::TooBroad),
        ] {
            assert_eq!(RedirectHost::parse(entry), Err(error), "{entry}");
        }
    }

    proptest! {
        /// An `https` URI is usable only if its host is listed, with any path, port and letter
        /// case.
        #[test]
        fn usable_https_uris_have_a_listed_host(uri in "[hH]ttps://[a-zA-Z.:@%0-9/?_-]{0,12}(chat|apps)?\\.?(example)?\\.?[a-z.:@0-9/?-]{0,12}") {
            let policy = policy(&["chat.example", "*.apps.example"]);
            if let Ok(uri) = RedirectUri::parse_registered(&uri)
                && policy.is_usable(&uri)
            {
                let host = uri.url().host_str().unwrap();
                prop_assert!(host == "chat.example" || host.ends_with(".apps.example"), "{}", host);
                prop_assert_eq!(uri.url().port_or_known_default(), Some(443));
            }
        }

        #[test]
        fn random_uris_and_entries_do_not_panic(uri in ".{0,40}", entry in ".{0,20}") {
            let host = RedirectHost::parse(&entry).ok();
            let policy = RedirectHosts::new(host);
            if let Ok(uri) = RedirectUri::parse_registered(&uri) {
                let _ = policy.is_usable(&uri);
            }
        }
    }
}
