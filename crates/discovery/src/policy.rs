//! [`UrlPolicy`]: which addresses a fetch may go to.

use std::net::IpAddr;

use portcullis_metadata::{is_https_or_loopback_http, is_loopback};
use url::{Host, Url};

use crate::{
    UrlPolicyError,
    addresses::{self, Reach},
};

/// Which addresses a fetch may go to: who wrote the URL decides.
///
/// All ask for `https`, with plain `http` to a loopback host as the exception, and refuse user information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlPolicy {
    /// The operator of this process wrote the URL, or it stands in a document of an issuer that the operator
    /// configured: private addresses are fine, plain `http` to loopback is, and the egress proxy is used.
    Operator,
    /// A user typed the origin of the URL: private addresses are accepted, and the CA file applies. Link-local addresses
    /// and those at which clouds serve credentials are rejected.
    StartOrigin,
    /// A peer supplied the URL. Only public addresses are accepted. Without a proxy, these are the addresses that the name
    /// resolves to. A proxy resolves names itself; behind one, an address in place of a name is rejected, and so are names
    /// of private networks: `localhost`, those below `.internal`, `.local`, `.localhost`, `.localdomain` and `.home.arpa`,
    /// and names with a single label. The CA file does not apply.
    Peer {
        /// Whether loopback hosts are fine, with `http` too: only when the URL that the person started from was
        /// itself a loopback one. The host must be loopback by its name or literal; another name that
        /// resolves to loopback is still refused.
        loopback_http: bool,
        /// Whether private, unique-local, shared (CGNAT) and loopback addresses are fine. Link-local, multicast,
        /// unspecified, documentation and cloud metadata addresses stay refused.
        private_addresses: bool,
    },
}

impl UrlPolicy {
    /// The policy for what a peer supplies when a person started from `start`: loopback is fine exactly when
    /// `start` is loopback, private addresses are not.
    pub fn peer_of(start: &Url) -> Self {
        Self::Peer { loopback_http: is_loopback(start), private_addresses: false }
    }

    /// Judges a URL before anything is resolved. A literal address is judged here and finally; a name is judged
    /// again, by [`admits`](Self::admits), on each address that it resolves to.
    ///
    /// # Errors
    /// When the scheme, user information or a literal address is not acceptable.
    pub fn check(self, url: &Url) -> Result<(), UrlPolicyError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlPolicyError::UserInformation);
        }
        if !is_https_or_loopback_http(url) {
            return Err(UrlPolicyError::Scheme);
        }
        let (loopback_http, private_addresses) = match self {
            Self::Operator => return Ok(()),
            Self::StartOrigin => (true, true),
            Self::Peer { loopback_http, private_addresses } => (loopback_http, private_addresses),
        };
        if url.scheme() == "http" && !loopback_http {
            return Err(UrlPolicyError::Scheme);
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            _ if is_loopback(url) && !loopback_http && !private_addresses => return Err(UrlPolicyError::Address),
            _ => return Ok(()),
        };
        if self.admits(url, literal) { Ok(()) } else { Err(UrlPolicyError::Address) }
    }

    /// Whether a connection for `url` may go to `address`, one of those that its host stands for. `localhost` and
    /// names below it stand for loopback addresses alone, under either policy.
    pub fn admits(self, url: &Url, address: IpAddr) -> bool {
        let host_is_loopback = is_loopback(url);
        let reach = addresses::reach(address);
        if host_is_loopback && reach != Reach::Loopback {
            return false;
        }
        let Self::Peer { loopback_http, private_addresses } = self else {
            return self == Self::Operator || !matches!(reach, Reach::LinkLocal | Reach::CloudMetadata);
        };
        match reach {
            Reach::Public => true,
            Reach::Loopback => private_addresses || (loopback_http && host_is_loopback),
            Reach::Private => private_addresses,
            Reach::LinkLocal | Reach::CloudMetadata | Reach::Special => false,
        }
    }

    /// Checks a URL that [`check`](Self::check) has accepted and that a proxy is to connect to. The proxy resolves the
    /// name, so that the name alone decides.
    ///
    /// It does not check what the name resolves to at the proxy: a public name may stand for a private address there.
    ///
    /// # Errors
    /// When a peer supplied an address in place of a name, or a name of a private network; when the name is one at which a
    /// cloud serves credentials.
    pub fn check_proxied(self, url: &Url) -> Result<(), UrlPolicyError> {
        if self == Self::Operator {
            return Ok(());
        }
        let Some(Host::Domain(name)) = url.host() else {
            return match self {
                Self::Peer { private_addresses: false, .. } => Err(UrlPolicyError::PrivateName),
                _ => Ok(()),
            };
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_below =
            |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let is_private = || !name.contains('.') || PRIVATE_DOMAINS.into_iter().any(is_below);
        let refuses_private = matches!(self, Self::Peer { private_addresses: false, .. });
        if METADATA_NAMES.into_iter().any(is_below) || (refuses_private && is_private()) {
            return Err(UrlPolicyError::PrivateName);
        }
        Ok(())
    }
}

/// The domains of private networks: RFC 6761 section 6.3, RFC 6762 section 3, RFC 8375, the reservation of `internal` by
/// ICANN (2024), and the domain that systems give to hosts without one.
const PRIVATE_DOMAINS: [&str; 5] = ["localhost", "local", "home.arpa", "internal", "localdomain"];

/// The names at which clouds serve credentials: Google Cloud, Google Cloud, AWS.
const METADATA_NAMES: [&str; 3] = ["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"];

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: UrlPolicy = UrlPolicy::Peer { loopback_http: false, private_addresses: false };
    const LOOPBACK: UrlPolicy = UrlPolicy::Peer { loopback_http: true, private_addresses: false };
    const PRIVATE: UrlPolicy = UrlPolicy::Peer { loopback_http: false, private_addresses: true };

    fn check(policy: UrlPolicy, url: &str) -> Result<(), UrlPolicyError> {
        policy.check(&Url::parse(url).unwrap())
    }

    /// G6: literal addresses that a peer may not name, in every spelling.
    #[test]
    fn a_peer_cannot_name_an_address_that_is_not_public() {
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
            assert_eq!(check(PEER, &format!("https://{host}/")), Err(UrlPolicyError::Address), "{host}");
        }
        for host in
            ["9.9.9.9", "172.32.0.1", "auth.example.com", "[2620:fe::fe]", "[2002:909:909::]", "[::ffff:9.9.9.9]"]
        {
            assert_eq!(check(PEER, &format!("https://{host}/")), Ok(()), "{host}");
        }
    }

    /// G6: plain http is for loopback alone, and from a peer only when the start was loopback.
    #[test]
    fn plain_http_is_for_loopback() {
        for policy in [UrlPolicy::Operator, LOOPBACK] {
            for host in ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "a.localhost"] {
                assert_eq!(check(policy, &format!("http://{host}:1/")), Ok(()), "{host}");
            }
            assert_eq!(check(policy, "http://169.254.169.254/"), Err(UrlPolicyError::Scheme));
            assert_eq!(check(policy, "http://auth.example.com/"), Err(UrlPolicyError::Scheme));
            assert_eq!(check(policy, "http://[::ffff:127.0.0.1]/"), Err(UrlPolicyError::Scheme));
        }
        for policy in [PEER, PRIVATE] {
            assert_eq!(check(policy, "http://127.0.0.1/"), Err(UrlPolicyError::Scheme));
        }
        assert_eq!(check(UrlPolicy::Operator, "ftp://auth.example.com/"), Err(UrlPolicyError::Scheme));
        assert_eq!(check(UrlPolicy::Operator, "https://a@auth.example.com/"), Err(UrlPolicyError::UserInformation));
        assert_eq!(check(PEER, "https://:b@auth.example.com/"), Err(UrlPolicyError::UserInformation));
    }

    /// G6: private addresses are the operator's to use, and a peer's when that is allowed; special ones never are a peer's.
    #[test]
    fn private_addresses_where_they_are_allowed() {
        for host in ["10.0.0.1", "100.64.0.1", "[fc00::1]", "127.0.0.1", "localhost"] {
            assert_eq!(check(UrlPolicy::Operator, &format!("https://{host}/")), Ok(()), "{host}");
            assert_eq!(check(PRIVATE, &format!("https://{host}/")), Ok(()), "{host}");
        }
        for host in ["169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "0.0.0.0", "100.100.100.200"] {
            assert_eq!(check(UrlPolicy::Operator, &format!("https://{host}/")), Ok(()), "{host}");
            assert_eq!(check(PRIVATE, &format!("https://{host}/")), Err(UrlPolicyError::Address), "{host}");
        }
        assert_eq!(check(LOOPBACK, "https://10.0.0.1/"), Err(UrlPolicyError::Address));
    }

    #[test]
    fn loopback_is_fine_when_the_start_was() {
        let peer_of = |start: &str| UrlPolicy::peer_of(&Url::parse(start).unwrap());
        assert_eq!(peer_of("http://127.0.0.1:3000/mcp"), LOOPBACK);
        assert_eq!(peer_of("https://mcp.example.com/mcp"), PEER);
    }

    /// G6: what a user typed may be private, and is never a link-local address or one of a cloud's credentials.
    #[test]
    fn the_origin_that_a_user_typed_may_be_private() {
        for host in ["10.0.0.1", "192.168.1.1", "[fd00::1]", "127.0.0.1", "9.9.9.9", "mcp.corp.internal", "mcp"] {
            assert_eq!(check(UrlPolicy::StartOrigin, &format!("https://{host}/")), Ok(()), "{host}");
        }
        assert_eq!(check(UrlPolicy::StartOrigin, "http://127.0.0.1:1/"), Ok(()));
        assert_eq!(check(UrlPolicy::StartOrigin, "http://10.0.0.1/"), Err(UrlPolicyError::Scheme));
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
            let refused = Err(UrlPolicyError::Address);
            assert_eq!(check(UrlPolicy::StartOrigin, &format!("https://{host}/")), refused, "{host}");
        }
        let url = Url::parse("https://mcp.example.com/").unwrap();
        for (address, is_admitted) in [("10.0.0.1", true), ("127.0.0.1", true), ("169.254.169.254", false)] {
            assert_eq!(UrlPolicy::StartOrigin.admits(&url, address.parse().unwrap()), is_admitted, "{address}");
        }
    }

    /// G6: a proxy resolves names itself, so that a peer can give it neither an address, in any notation, nor the name of
    /// a private network.
    #[test]
    fn a_peer_cannot_send_the_proxy_into_a_private_network() {
        let proxied =
            |policy: UrlPolicy, host: &str| policy.check_proxied(&Url::parse(&format!("https://{host}/")).unwrap());
        let private = [
            "9.9.9.9",
            "10.0.0.1",
            "167772161",
            "0x0a000001",
            "012.0.0.1",
            "[::ffff:10.0.0.1]",
            "[2620:fe::fe]",
            "localhost",
            "localhost.",
            "a.localhost",
            "intranet",
            "INTRANET.",
            "auth.internal",
            "auth.corp.internal.",
            "printer.local",
            "nas.home.arpa",
            "host.localdomain",
        ];
        for host in private {
            assert_eq!(proxied(PEER, host), Err(UrlPolicyError::PrivateName), "{host}");
            for policy in [PRIVATE, UrlPolicy::StartOrigin, UrlPolicy::Operator] {
                assert_eq!(proxied(policy, host), Ok(()), "{host}");
            }
        }
        for host in ["auth.example.com", "internal.example.com", "notlocal", "xinternal.example", "local.example."] {
            let is_single = !host.contains('.');
            assert_eq!(proxied(PEER, host).is_err(), is_single, "{host}");
        }
        for host in ["metadata.google.internal", "METADATA.google.internal.", "metadata.goog"] {
            for policy in [PEER, PRIVATE, UrlPolicy::StartOrigin] {
                assert_eq!(proxied(policy, host), Err(UrlPolicyError::PrivateName), "{host}");
            }
        }
    }
}
