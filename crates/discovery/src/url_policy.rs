//! [`UrlPolicy`]: to which addresses a fetch may be sent.

use std::net::IpAddr;

use portcullis_metadata::syntax::{is_https_or_loopback_http, is_loopback};
use url::{Host, Url};

mod address_reach;
mod chain_policy;
mod error;
mod named;
mod private_name;

use address_reach::{Reach, reach};
pub use chain_policy::ChainPolicy;
pub use error::UrlPolicyError;

/// The addresses to which a fetch may be sent. They depend on who supplied the URL.
///
/// All policies require `https`, except that `http` with a loopback host may be allowed, and forbid
/// user information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlPolicy {
    /// The operator of this process supplied the URL. [`of_named`](Self::of_named) is the policy
    /// for URLs in documents. All addresses and `http` with a loopback host are allowed.
    Operator,
    /// A user entered the origin of the URL. `http` with a loopback host is allowed, and so are all
    /// addresses except link-local ones and those of cloud metadata services.
    StartOrigin,
    /// A peer supplied the URL. Only public addresses are allowed, after name resolution. An egress
    /// proxy resolves names itself; [`check_proxied`](UrlPolicy::check_proxied) decides by the name
    /// what may be sent to it.
    Peer {
        /// Whether loopback hosts are allowed, also with `http`. Set it only if the URL from which
        /// the user started has a loopback host. Other names that resolve to loopback remain
        /// forbidden.
        loopback_http: bool,
        /// Whether private, unique-local, shared (CGNAT) and loopback addresses are allowed.
        /// Link-local, multicast, unspecified, documentation and cloud metadata addresses remain
        /// forbidden.
        private_addresses: bool,
    },
}

impl UrlPolicy {
    /// Returns the policy for URLs that a peer supplies when the user started from `start`.
    /// Loopback is allowed if `start` has a loopback host. Private addresses are forbidden.
    pub fn peer_of(start: &Url) -> Self {
        Self::Peer {
            loopback_http: is_loopback(start),
            private_addresses: false,
        }
    }

    /// Checks a URL before name resolution. Check each address to which a name resolves with
    /// [`allows_address`](Self::allows_address).
    ///
    /// # Errors
    /// Fails if the scheme or a literal address is forbidden, or the URL has user information.
    pub fn check(self, url: &Url) -> Result<(), UrlPolicyError> {
        let (loopback_http, private_addresses) = match self {
            Self::Operator | Self::StartOrigin => (true, true),
            Self::Peer {
                loopback_http,
                private_addresses,
            } => (loopback_http, private_addresses),
        };
        if !is_https_or_loopback_http(url) || (url.scheme() == "http" && !loopback_http) {
            return Err(UrlPolicyError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlPolicyError::UserInformation);
        }
        if self == Self::Operator {
            return Ok(());
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            _ if is_loopback(url) && !loopback_http && !private_addresses => {
                return Err(UrlPolicyError::Address);
            }
            _ => return Ok(()),
        };
        if self.allows_address(url, literal) {
            Ok(())
        } else {
            Err(UrlPolicyError::Address)
        }
    }

    /// Returns whether a request for `url` may be sent to `address`, to which its host resolves.
    /// `localhost` and its subdomains may resolve only to loopback addresses.
    pub fn allows_address(self, url: &Url, address: IpAddr) -> bool {
        let host_is_loopback = is_loopback(url);
        let reach = reach(address);
        if host_is_loopback && reach != Reach::Loopback {
            return false;
        }
        let Self::Peer {
            loopback_http,
            private_addresses,
        } = self
        else {
            return self == Self::Operator
                || !matches!(reach, Reach::LinkLocal | Reach::CloudMetadata);
        };
        match reach {
            Reach::Public => true,
            Reach::Loopback => private_addresses || (loopback_http && host_is_loopback),
            Reach::Private => private_addresses,
            Reach::LinkLocal | Reach::CloudMetadata | Reach::Special => false,
        }
    }

    /// Checks a URL that is requested through an egress proxy, in addition to
    /// [`check`](Self::check). The proxy resolves the name, so only the name can be checked: it may
    /// still resolve to a private address at the proxy.
    ///
    /// For a peer, IP addresses and names of private networks are forbidden unless private
    /// addresses are allowed: names with one label, and names in `internal`, `local`, `localhost`,
    /// `localdomain` and `home.arpa`. Names of cloud metadata services are forbidden for everyone
    /// except the operator.
    ///
    /// # Errors
    /// Fails if the host is forbidden.
    pub fn check_proxied(self, url: &Url) -> Result<(), UrlPolicyError> {
        let only_public = match self {
            Self::Operator => return Ok(()),
            Self::StartOrigin => false,
            Self::Peer {
                private_addresses, ..
            } => !private_addresses,
        };
        let is_forbidden = match url.host() {
            Some(Host::Domain(name)) => {
                private_name::is_cloud_metadata(name)
                    || (only_public && private_name::is_private(name))
            }
            _ => only_public,
        };
        if is_forbidden {
            Err(UrlPolicyError::PrivateName)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: UrlPolicy = UrlPolicy::Peer {
        loopback_http: false,
        private_addresses: false,
    };
    const LOOPBACK: UrlPolicy = UrlPolicy::Peer {
        loopback_http: true,
        private_addresses: false,
    };
    const PRIVATE: UrlPolicy = UrlPolicy::Peer {
        loopback_http: false,
        private_addresses: true,
    };

    fn check(policy: UrlPolicy, url: &str) -> Result<(), UrlPolicyError> {
        policy.check(&Url::parse(url).unwrap())
    }

    /// G6: a peer's URL with an address that is not public is rejected, in every spelling.
    #[test]
    fn addresses_of_a_peer_must_be_public() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "127.0.0.1.",
            "10.0.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "0.0.0.0",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "localhost",
            "a.localhost",
            "[::]",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "[::ffff:127.0.0.1]",
            "[::7f00:1]",
            "[64:ff9b::a00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::1]",
            "[2002:a00:1::]",
            "[2002:7f00:1::1]",
            "[2001::1]",
            "[2001:db8::1]",
            "[3fff::1]",
            "[fd00:ec2::254]",
            "[fd20:ce::254]",
            "[fc00::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[100::1]",
            "[4000::1]",
        ] {
            assert_eq!(
                check(PEER, &format!("https://{host}/")),
                Err(UrlPolicyError::Address),
                "{host}"
            );
        }
        for host in [
            "9.9.9.9",
            "172.32.0.1",
            "auth.example.com",
            "[2620:fe::fe]",
            "[2002:909:909::]",
            "[::ffff:9.9.9.9]",
        ] {
            assert_eq!(check(PEER, &format!("https://{host}/")), Ok(()), "{host}");
        }
    }

    /// G6: plain http is allowed only for loopback, and from a peer only if the chain started at
    /// loopback.
    #[test]
    fn plain_http_is_for_loopback() {
        for policy in [UrlPolicy::Operator, LOOPBACK] {
            for host in [
                "127.0.0.1",
                "127.8.8.8",
                "[::1]",
                "localhost",
                "a.localhost",
            ] {
                assert_eq!(
                    check(policy, &format!("http://{host}:1/")),
                    Ok(()),
                    "{host}"
                );
            }
            assert_eq!(
                check(policy, "http://169.254.169.254/"),
                Err(UrlPolicyError::Scheme)
            );
            assert_eq!(
                check(policy, "http://auth.example.com/"),
                Err(UrlPolicyError::Scheme)
            );
            assert_eq!(
                check(policy, "http://[::ffff:127.0.0.1]/"),
                Err(UrlPolicyError::Scheme)
            );
        }
        for policy in [PEER, PRIVATE] {
            assert_eq!(
                check(policy, "http://127.0.0.1/"),
                Err(UrlPolicyError::Scheme)
            );
        }
        assert_eq!(
            check(UrlPolicy::Operator, "ftp://auth.example.com/"),
            Err(UrlPolicyError::Scheme)
        );
        assert_eq!(
            check(UrlPolicy::Operator, "https://a@auth.example.com/"),
            Err(UrlPolicyError::UserInformation)
        );
        assert_eq!(
            check(PEER, "https://:b@auth.example.com/"),
            Err(UrlPolicyError::UserInformation)
        );
    }

    /// G6: the operator can use private addresses, and a peer if the policy allows it. A peer can
    /// never use special ones.
    #[test]
    fn private_addresses_where_they_are_allowed() {
        for host in [
            "10.0.0.1",
            "100.64.0.1",
            "[fc00::1]",
            "127.0.0.1",
            "localhost",
        ] {
            assert_eq!(
                check(UrlPolicy::Operator, &format!("https://{host}/")),
                Ok(()),
                "{host}"
            );
            assert_eq!(
                check(PRIVATE, &format!("https://{host}/")),
                Ok(()),
                "{host}"
            );
        }
        for host in [
            "169.254.169.254",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "0.0.0.0",
            "100.100.100.200",
        ] {
            assert_eq!(
                check(UrlPolicy::Operator, &format!("https://{host}/")),
                Ok(()),
                "{host}"
            );
            assert_eq!(
                check(PRIVATE, &format!("https://{host}/")),
                Err(UrlPolicyError::Address),
                "{host}"
            );
        }
        assert_eq!(
            check(LOOPBACK, "https://10.0.0.1/"),
            Err(UrlPolicyError::Address)
        );
    }

    #[test]
    fn loopback_is_allowed_if_the_start_was_loopback() {
        let peer_of = |start: &str| UrlPolicy::peer_of(&Url::parse(start).unwrap());
        assert_eq!(peer_of("http://127.0.0.1:3000/mcp"), LOOPBACK);
        assert_eq!(peer_of("https://mcp.example.com/mcp"), PEER);
    }

    /// G6: the origin that a user entered can be private, but not link-local or a cloud metadata
    /// service.
    #[test]
    fn the_origin_that_a_user_entered_can_be_private() {
        for host in [
            "10.0.0.1",
            "192.168.1.1",
            "[fd00::1]",
            "127.0.0.1",
            "9.9.9.9",
            "mcp.corp.internal",
            "mcp",
        ] {
            assert_eq!(
                check(UrlPolicy::StartOrigin, &format!("https://{host}/")),
                Ok(()),
                "{host}"
            );
        }
        assert_eq!(check(UrlPolicy::StartOrigin, "http://127.0.0.1:1/"), Ok(()));
        assert_eq!(
            check(UrlPolicy::StartOrigin, "http://10.0.0.1/"),
            Err(UrlPolicyError::Scheme)
        );

        for host in [
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0251.0376.0251.0376",
            "[::ffff:169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
        ] {
            let rejected = Err(UrlPolicyError::Address);
            assert_eq!(
                check(UrlPolicy::StartOrigin, &format!("https://{host}/")),
                rejected,
                "{host}"
            );
        }
        let url = Url::parse("https://mcp.example.com/").unwrap();
        for (address, is_admitted) in [
            ("10.0.0.1", true),
            ("127.0.0.1", true),
            ("169.254.169.254", false),
        ] {
            assert_eq!(
                UrlPolicy::StartOrigin.allows_address(&url, address.parse().unwrap()),
                is_admitted,
                "{address}"
            );
        }
    }
}
