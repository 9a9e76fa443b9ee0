//! [`PoolKey`]: which requests can share connections.

use url::Url;

use super::proxy::Proxies;
use crate::url_policy::UrlPolicy;

/// Requests that can share connections: all to plain `http`, direct ones with the same policy,
/// which filters the addresses, and proxied ones with the same trusted certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolKey {
    /// Plain `http`, only to loopback.
    Plain,
    /// `https` without a proxy. Names are resolved here, and the policy filters the addresses.
    Direct(UrlPolicy),
    /// `https` through the proxy, which resolves the names.
    Proxied {
        /// Whether the certificates of the CA file are trusted.
        trusts_ca_file: bool,
    },
}

impl PoolKey {
    /// The number of pools, and the maximum of [`index`](Self::index) plus one.
    pub(crate) const COUNT: usize = 9;

    /// Returns the pool for a URL that the policy accepts.
    pub(crate) fn of(policy: UrlPolicy, url: &Url, proxies: &Proxies) -> Self {
        match url.scheme() {
            "http" => Self::Plain,
            _ if proxies.applies_to(url) => Self::Proxied {
                trusts_ca_file: trusts_ca_file(policy),
            },
            _ => Self::Direct(policy),
        }
    }

    /// Returns the position of the pool. No other pool has it.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Direct(UrlPolicy::Operator) => 1,
            Self::Direct(UrlPolicy::StartOrigin) => 2,
            Self::Direct(UrlPolicy::Peer {
                loopback_http,
                private_addresses,
            }) => 3 + usize::from(loopback_http) + 2 * usize::from(private_addresses),
            Self::Proxied { trusts_ca_file } => 7 + usize::from(trusts_ca_file),
        }
    }

    /// Returns the policy that filters resolved addresses. For a proxied request, only the proxy's
    /// own name is resolved.
    pub(crate) fn policy(self) -> UrlPolicy {
        match self {
            Self::Plain => UrlPolicy::Peer {
                loopback_http: true,
                private_addresses: false,
            },
            Self::Direct(policy) => policy,
            Self::Proxied { .. } => UrlPolicy::Operator,
        }
    }

    /// Whether the certificates of the CA file are trusted.
    pub(crate) fn trusts_ca_file(self) -> bool {
        match self {
            Self::Plain => false,
            Self::Direct(policy) => trusts_ca_file(policy),
            Self::Proxied { trusts_ca_file } => trusts_ca_file,
        }
    }
}

/// Returns whether the CA file applies: only to hosts that the user or the operator entered.
fn trusts_ca_file(policy: UrlPolicy) -> bool {
    !matches!(policy, UrlPolicy::Peer { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: [UrlPolicy; 6] = [
        UrlPolicy::Operator,
        UrlPolicy::StartOrigin,
        UrlPolicy::Peer {
            loopback_http: false,
            private_addresses: false,
        },
        UrlPolicy::Peer {
            loopback_http: true,
            private_addresses: false,
        },
        UrlPolicy::Peer {
            loopback_http: false,
            private_addresses: true,
        },
        UrlPolicy::Peer {
            loopback_http: true,
            private_addresses: true,
        },
    ];

    fn pool(policy: UrlPolicy, url: &str, proxies: &Proxies) -> PoolKey {
        PoolKey::of(policy, &Url::parse(url).unwrap(), proxies)
    }

    /// G6: all requests except those to loopback use a configured proxy. The CA file does not apply
    /// to peers.
    #[test]
    fn the_proxy_applies_to_all_requests_except_loopback() {
        let proxies = Proxies::fixed(Url::parse("http://proxy.example:3128").unwrap());
        for policy in POLICIES {
            let trusts_ca_file = !matches!(policy, UrlPolicy::Peer { .. });
            for url in ["https://auth.example.com/", "https://10.0.0.1/"] {
                assert_eq!(
                    pool(policy, url, &proxies),
                    PoolKey::Proxied { trusts_ca_file },
                    "{policy:?}"
                );
                assert_eq!(pool(policy, url, &Proxies::none()), PoolKey::Direct(policy));
            }
            for url in ["https://localhost/", "https://127.0.0.1/", "https://[::1]/"] {
                assert_eq!(pool(policy, url, &proxies), PoolKey::Direct(policy));
            }
            assert_eq!(pool(policy, "http://127.0.0.1/", &proxies), PoolKey::Plain);
            assert_eq!(PoolKey::Direct(policy).trusts_ca_file(), trusts_ca_file);
        }
    }

    #[test]
    fn every_pool_has_an_index_of_its_own() {
        let mut indexes: Vec<_> = POLICIES
            .map(|policy| PoolKey::Direct(policy).index())
            .into();
        indexes.extend(
            [false, true].map(|trusts_ca_file| PoolKey::Proxied { trusts_ca_file }.index()),
        );
        indexes.push(PoolKey::Plain.index());
        indexes.sort_unstable();
        assert_eq!(indexes, (0..PoolKey::COUNT).collect::<Vec<_>>());
    }
}
