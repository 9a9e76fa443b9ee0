//! [`PoolKey`]: which requests share connections.

use portcullis_metadata::is_loopback;
use url::Url;

use crate::url_policy::UrlPolicy;

/// Identifies the connection pool of a request. Requests with one key have the same policy, trusted certificates and
/// proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKey {
    /// `http` to loopback.
    Plain,
    /// `https` to a loopback host under the operator's policy, without a proxy.
    OperatorLoopback,
    /// `https` to other hosts under the operator's policy.
    Operator,
    /// `https` under a peer's policy.
    Peer { loopback_http: bool, private_addresses: bool },
}

impl PoolKey {
    /// The number of keys.
    pub(crate) const COUNT: usize = 7;

    /// Returns the key of a URL that the policy allows.
    pub(crate) fn of(policy: UrlPolicy, url: &Url) -> Self {
        match policy {
            _ if url.scheme() == "http" => Self::Plain,
            UrlPolicy::Operator if is_loopback(url) => Self::OperatorLoopback,
            UrlPolicy::Operator => Self::Operator,
            UrlPolicy::Peer { loopback_http, private_addresses } => Self::Peer { loopback_http, private_addresses },
        }
    }

    /// Returns an index below [`COUNT`](Self::COUNT).
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::OperatorLoopback => 1,
            Self::Operator => 2,
            Self::Peer { loopback_http, private_addresses } => {
                3 + usize::from(loopback_http) + 2 * usize::from(private_addresses)
            }
        }
    }

    /// Returns the policy for resolved addresses.
    pub(crate) fn policy(self) -> UrlPolicy {
        match self {
            Self::Plain => UrlPolicy::Peer { loopback_http: true, private_addresses: false },
            Self::OperatorLoopback | Self::Operator => UrlPolicy::Operator,
            Self::Peer { loopback_http, private_addresses } => UrlPolicy::Peer { loopback_http, private_addresses },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEERS: [UrlPolicy; 4] = [
        UrlPolicy::Peer { loopback_http: false, private_addresses: false },
        UrlPolicy::Peer { loopback_http: true, private_addresses: false },
        UrlPolicy::Peer { loopback_http: false, private_addresses: true },
        UrlPolicy::Peer { loopback_http: true, private_addresses: true },
    ];

    fn pool_key(policy: UrlPolicy, url: &str) -> PoolKey {
        PoolKey::of(policy, &Url::parse(url).unwrap())
    }

    /// G6: only requests under the operator's policy use the proxy, and never requests to loopback.
    #[test]
    fn only_the_operators_requests_use_the_proxy() {
        assert_eq!(pool_key(UrlPolicy::Operator, "https://auth.internal/"), PoolKey::Operator);
        assert_eq!(pool_key(UrlPolicy::Operator, "https://localhost/"), PoolKey::OperatorLoopback);
        assert_eq!(pool_key(UrlPolicy::Operator, "http://127.0.0.1/"), PoolKey::Plain);
        for peer in PEERS {
            assert!(matches!(pool_key(peer, "https://auth.internal/"), PoolKey::Peer { .. }));
            assert_eq!(pool_key(peer, "https://auth.internal/").policy(), peer);
        }
    }

    #[test]
    fn indexes_are_unique() {
        let mut places: Vec<_> = PEERS.into_iter().map(|peer| pool_key(peer, "https://a/").index()).collect();
        places.extend([PoolKey::Plain, PoolKey::OperatorLoopback, PoolKey::Operator].map(PoolKey::index));
        places.sort_unstable();
        assert_eq!(places, (0..PoolKey::COUNT).collect::<Vec<_>>());
    }
}
