//! [`ChainPolicy`]: the policy for each URL of a chain that a user started.

use portcullis_metadata::syntax::is_loopback;
use url::{Origin, Url};

use super::UrlPolicy;

/// The [`UrlPolicy`] for each URL of a chain: the documents, endpoints and keys that follow from
/// one URL.
///
/// In a chain that starts with a URL from a user, URLs of that origin have
/// [`UrlPolicy::StartOrigin`] and all others have [`UrlPolicy::Peer`]. A chain that an operator
/// configured has one policy for all URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPolicy {
    start: Option<Origin>,
    others: UrlPolicy,
}

impl ChainPolicy {
    /// Returns the policy of a chain that starts with a URL from a user. URLs with its scheme, host
    /// and port are trusted as the user's own. For others, loopback is allowed if `start` is
    /// loopback, and private addresses if `private_addresses` is set.
    pub fn started_at(start: &Url, private_addresses: bool) -> Self {
        let others = UrlPolicy::Peer {
            loopback_http: is_loopback(start),
            private_addresses,
        };
        Self {
            start: Some(start.origin()),
            others,
        }
    }

    /// Returns the policy for a URL of the chain.
    pub fn of(&self, url: &Url) -> UrlPolicy {
        match &self.start {
            Some(start) if *start == url.origin() => UrlPolicy::StartOrigin,
            _ => self.others,
        }
    }
}

/// Uses the same policy for all URLs.
impl From<UrlPolicy> for ChainPolicy {
    fn from(policy: UrlPolicy) -> Self {
        Self {
            start: None,
            others: policy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G6: only URLs with the scheme, host and port of the start are trusted. All others have the
    /// policy for peers.
    #[test]
    fn only_the_start_origin_is_trusted() {
        let url = |text: &str| Url::parse(text).unwrap();
        let policy = ChainPolicy::started_at(&url("https://mcp.corp.example/a/mcp"), false);
        for own in [
            "https://mcp.corp.example/",
            "https://MCP.corp.example:443/.well-known/x?y",
        ] {
            assert_eq!(policy.of(&url(own)), UrlPolicy::StartOrigin, "{own}");
        }
        let peer = UrlPolicy::Peer {
            loopback_http: false,
            private_addresses: false,
        };
        for other in [
            "https://mcp.corp.example:8443/",
            "http://mcp.corp.example/",
            "https://mcp.corp.example./",
            "https://auth.mcp.corp.example/",
            "https://corp.example/",
            "https://127.0.0.1/",
        ] {
            assert_eq!(policy.of(&url(other)), peer, "{other}");
        }
        let allowed = ChainPolicy::started_at(&url("http://127.0.0.1:3000/mcp"), true);
        let peer = UrlPolicy::Peer {
            loopback_http: true,
            private_addresses: true,
        };
        assert_eq!(allowed.of(&url("http://127.0.0.1:4000/")), peer);

        // An opaque origin equals no other.
        assert_eq!(
            policy.of(&url("data:text/plain,a")),
            UrlPolicy::Peer {
                loopback_http: false,
                private_addresses: false
            }
        );
        assert_eq!(
            ChainPolicy::from(UrlPolicy::Operator).of(&url("https://a.example/")),
            UrlPolicy::Operator
        );
    }
}
