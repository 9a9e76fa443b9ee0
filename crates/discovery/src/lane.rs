use portcullis_metadata::is_loopback;
use url::Url;

use crate::UrlPolicy;

/// Requests that may share a connection pool: same policy, same trust, same way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Plain `http`, to loopback alone.
    Plain,
    /// `https` to a loopback host under the operator's policy: never by a proxy.
    OperatorLoopback,
    /// `https` elsewhere under the operator's policy.
    Operator,
    /// `https` under the peer's policy.
    Peer { loopback_http: bool, private_addresses: bool },
}

impl Lane {
    pub(crate) const COUNT: usize = 7;

    /// The lane of a URL that the policy's check has passed.
    pub(crate) fn of(policy: UrlPolicy, url: &Url) -> Self {
        match policy {
            _ if url.scheme() == "http" => Self::Plain,
            UrlPolicy::Operator if is_loopback(url) => Self::OperatorLoopback,
            UrlPolicy::Operator => Self::Operator,
            UrlPolicy::Peer { loopback_http, private_addresses } => Self::Peer { loopback_http, private_addresses },
        }
    }

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

    /// What resolved addresses are judged by.
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

    fn lane(policy: UrlPolicy, url: &str) -> Lane {
        Lane::of(policy, &Url::parse(url).unwrap())
    }

    /// G6: only the operator's own addresses take the lane that has a proxy, and loopback never does.
    #[test]
    fn the_proxied_lane_is_the_operators() {
        assert_eq!(lane(UrlPolicy::Operator, "https://auth.internal/"), Lane::Operator);
        assert_eq!(lane(UrlPolicy::Operator, "https://localhost/"), Lane::OperatorLoopback);
        assert_eq!(lane(UrlPolicy::Operator, "http://127.0.0.1/"), Lane::Plain);
        for peer in PEERS {
            assert!(matches!(lane(peer, "https://auth.internal/"), Lane::Peer { .. }));
            assert_eq!(lane(peer, "https://auth.internal/").policy(), peer);
        }
    }

    #[test]
    fn every_lane_has_a_place_of_its_own() {
        let mut places: Vec<_> = PEERS.into_iter().map(|peer| lane(peer, "https://a/").index()).collect();
        places.extend([Lane::Plain, Lane::OperatorLoopback, Lane::Operator].map(Lane::index));
        places.sort_unstable();
        assert_eq!(places, (0..Lane::COUNT).collect::<Vec<_>>());
    }
}
