//! [`TrustedProxies`]: the client's address behind reverse proxies.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, header::FORWARDED};
use ipnet::IpNet;

/// The number of header values that are read, and of addresses in each.
const MAX_HOPS: usize = 32;

/// The address of the connection's peer: a request extension that a server sets, for the client's
/// address in the [`Decision`](crate::Decision) and for limits per address.
///
/// Without it, the client's address is unknown, and all such requests share one counter.
///
/// ```
/// use http::Request;
/// use portcullis_guard::Peer;
///
/// fn set_peer<B>(request: &mut Request<B>, address: std::net::SocketAddr) {
///     request.extensions_mut().insert(Peer(address));
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// The proxies whose forwarding header is trusted.
///
/// A proxy appends the address of its own peer to the header. The client's address is the last
/// address in the header that does not belong to a trusted proxy. The addresses before it can be
/// forged and are ignored. So is the header of a peer that is not a trusted proxy, and the header
/// that the [`ProxyHeader`] does not select.
///
/// The default trusts no proxy. At most 32 values of the header and 32 addresses of each are read.
///
/// ```
/// use portcullis_guard::{ProxyHeader, TrustedProxies};
///
/// let proxies = TrustedProxies::new(["10.0.0.0/8", "192.0.2.7"], ProxyHeader::Forwarded)?;
/// assert!(TrustedProxies::new(["proxy.internal"], ProxyHeader::default()).is_err());
/// # Ok::<(), portcullis_guard::TrustedProxyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    header: ProxyHeader,
}

/// The header in which trusted proxies report the client's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyHeader {
    /// `X-Forwarded-For`: a list of addresses.
    #[default]
    XForwardedFor,
    /// The parameter `for` of `Forwarded` (RFC 7239).
    Forwarded,
}

/// A string is neither an address nor a network such as `10.0.0.0/8`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address nor a network such as `10.0.0.0/8`")]
pub struct TrustedProxyError(String);

impl TrustedProxyError {
    /// Returns a stable code for logs and tests.
    pub const fn code(&self) -> &'static str {
        "settings.network"
    }
}

impl TrustedProxies {
    /// Trusts the proxies at these addresses and in these networks.
    ///
    /// # Errors
    /// Fails if a string is neither.
    pub fn new<'a>(
        networks: impl IntoIterator<Item = &'a str>,
        header: ProxyHeader,
    ) -> Result<Self, TrustedProxyError> {
        let parse = |text: &str| {
            text.parse()
                .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        };
        let networks = networks
            .into_iter()
            .map(|text| parse(text).map_err(|_| TrustedProxyError(text.to_owned())));
        Ok(Self {
            networks: networks.collect::<Result<_, _>>()?,
            header,
        })
    }

    /// Returns the client's address: the peer's, unless the peer is a trusted proxy with a valid
    /// header. Servers call it for requests that do not pass a guard.
    pub fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.ip().to_canonical();
        if !self.trusts(peer) {
            return peer;
        }
        let mut client = peer;
        for value in headers
            .get_all(self.header.name())
            .iter()
            .rev()
            .take(MAX_HOPS)
        {
            let Ok(text) = value.to_str() else {
                return peer;
            };
            for hop in text.rsplit(',').take(MAX_HOPS) {
                let Some(address) = self.header.address(hop.trim()) else {
                    return peer;
                };
                client = address.to_canonical();
                if !self.trusts(client) {
                    return client;
                }
            }
        }
        client
    }

    /// Returns the forwarding header of a request that is ignored because its peer is not a trusted
    /// proxy. `None` without such a header. For a warning: the peer is a proxy that the settings
    /// lack, or a client that forges the header.
    ///
    /// ```
    /// use http::{HeaderMap, HeaderValue, header};
    /// use portcullis_guard::{ProxyHeader, TrustedProxies};
    ///
    /// let proxies = TrustedProxies::new(["192.0.2.7"], ProxyHeader::Forwarded)?;
    /// let headers = HeaderMap::from_iter([(header::FORWARDED, HeaderValue::from_static("for=198.51.100.1"))]);
    /// assert_eq!(proxies.ignored_header("192.0.2.7:80".parse().unwrap(), &headers), None);
    /// assert_eq!(proxies.ignored_header("192.0.2.8:80".parse().unwrap(), &headers), Some(header::FORWARDED));
    /// # Ok::<(), portcullis_guard::TrustedProxyError>(())
    /// ```
    pub fn ignored_header(&self, peer: SocketAddr, headers: &HeaderMap) -> Option<HeaderName> {
        let names = [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded].map(ProxyHeader::name);
        let present = names.into_iter().find(|name| headers.contains_key(name))?;
        (!self.trusts(peer.ip().to_canonical())).then_some(present)
    }

    /// Returns the forwarding header that a request of a trusted proxy lacks, so that its client is
    /// unknown. `None` with the header, and for another peer. For a warning: the settings of the
    /// proxy lack the header, or name another one.
    ///
    /// ```
    /// use http::{HeaderMap, HeaderValue, header};
    /// use portcullis_guard::{ProxyHeader, TrustedProxies};
    ///
    /// let proxies = TrustedProxies::new(["192.0.2.7"], ProxyHeader::Forwarded)?;
    /// let headers = HeaderMap::new();
    /// assert_eq!(proxies.missing_header("192.0.2.7:80".parse().unwrap(), &headers), Some(header::FORWARDED));
    /// assert_eq!(proxies.missing_header("192.0.2.8:80".parse().unwrap(), &headers), None);
    /// # Ok::<(), portcullis_guard::TrustedProxyError>(())
    /// ```
    pub fn missing_header(&self, peer: SocketAddr, headers: &HeaderMap) -> Option<HeaderName> {
        let name = self.header.name();
        let is_missing = !headers.contains_key(&name) && self.trusts(peer.ip().to_canonical());
        is_missing.then_some(name)
    }

    /// Returns whether no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }
}

impl ProxyHeader {
    fn name(self) -> HeaderName {
        match self {
            Self::XForwardedFor => HeaderName::from_static("x-forwarded-for"),
            Self::Forwarded => FORWARDED,
        }
    }

    /// Returns the address in one element of the header's list. A fragment of a quoted string with
    /// a comma has none.
    fn address(self, element: &str) -> Option<IpAddr> {
        match self {
            Self::XForwardedFor => node(element),
            Self::Forwarded => {
                let mut nodes = element.split(';').filter_map(|pair| {
                    let (name, value) = pair.split_once('=')?;
                    name.trim()
                        .eq_ignore_ascii_case("for")
                        .then(|| value.trim())
                });
                let value = nodes.next().filter(|_| nodes.next().is_none())?;
                node(
                    value
                        .strip_prefix('"')
                        .map_or(Some(value), |quoted| quoted.strip_suffix('"'))?,
                )
            }
        }
    }
}

/// Returns an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
/// `[2001:db8::1]`, `[2001:db8::1]:80`.
fn node(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || {
        text.strip_prefix('[')?
            .strip_suffix(']')?
            .parse()
            .ok()
            .map(IpAddr::V6)
    };
    text.parse().ok().or_else(with_port).or_else(in_brackets)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn client(proxies: &TrustedProxies, peer: &str, values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        // The other header is forged by the client.
        let (other, forged) = match proxies.header {
            ProxyHeader::XForwardedFor => (ProxyHeader::Forwarded, "for=203.0.113.9"),
            ProxyHeader::Forwarded => (ProxyHeader::XForwardedFor, "203.0.113.9"),
        };
        headers.insert(other.name(), HeaderValue::from_static(forged));
        for value in values {
            headers.append(
                proxies.header.name(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        proxies
            .client(SocketAddr::new(peer.parse().unwrap(), 1234), &headers)
            .to_string()
    }

    fn trusting(header: ProxyHeader) -> TrustedProxies {
        TrustedProxies::new(["10.0.0.0/8", "192.0.2.7", "2001:db8:aa::/48"], header).unwrap()
    }

    /// J5: only the header of a trusted proxy is read, and only the address that the proxy itself
    /// added.
    #[test]
    fn the_last_untrusted_address_is_the_client() {
        let proxies = trusting(ProxyHeader::XForwardedFor);
        for (peer, values, expected) in [
            ("203.0.113.1", &["198.51.100.1"][..], "203.0.113.1"),
            ("10.1.2.3", &[], "10.1.2.3"),
            ("10.1.2.3", &["198.51.100.1"], "198.51.100.1"),
            ("::ffff:10.1.2.3", &["::ffff:198.51.100.1"], "198.51.100.1"),
            ("10.1.2.3", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            (
                "10.1.2.3",
                &["1.1.1.1, 198.51.100.1, 192.0.2.7,10.9.9.9"],
                "198.51.100.1",
            ),
            (
                "10.1.2.3",
                &["1.1.1.1", "198.51.100.1", "10.9.9.9"],
                "198.51.100.1",
            ),
            ("10.1.2.3", &["10.4.4.4, 10.5.5.5"], "10.4.4.4"),
            ("2001:db8:aa::1", &["2001:db8:bb::1"], "2001:db8:bb::1"),
            ("10.1.2.3", &["[2001:db8:bb::1]:80"], "2001:db8:bb::1"),
            ("10.1.2.3", &["[2001:db8:bb::1]"], "2001:db8:bb::1"),
            ("10.1.2.3", &["198.51.100.1:8080"], "198.51.100.1"),
        ] {
            assert_eq!(
                client(&proxies, peer, values),
                expected,
                "{peer} {values:?}"
            );
        }
    }

    /// J5: either header of a peer that is not a trusted proxy is ignored.
    #[test]
    fn headers_of_other_peers_are_ignored() {
        let proxies = trusting(ProxyHeader::XForwardedFor);
        for (peer, header, ignored) in [
            (
                "203.0.113.1:80",
                Some("x-forwarded-for"),
                Some("x-forwarded-for"),
            ),
            ("203.0.113.1:80", Some("forwarded"), Some("forwarded")),
            ("203.0.113.1:80", Some("x-real-ip"), None),
            ("203.0.113.1:80", None, None),
            ("10.1.2.3:80", Some("x-forwarded-for"), None),
            ("[::ffff:10.1.2.3]:80", Some("x-forwarded-for"), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(header.map(|name| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static("198.51.100.1"),
                )
            }));
            let found = proxies.ignored_header(peer.parse().unwrap(), &headers);
            assert_eq!(
                found,
                ignored.map(HeaderName::from_static),
                "{peer} {header:?}"
            );
        }
    }

    /// J5: only a trusted proxy lacks a header, and only that of the settings.
    #[test]
    fn headers_that_trusted_proxies_lack() {
        let proxies = trusting(ProxyHeader::XForwardedFor);
        for (peer, header, missing) in [
            ("10.1.2.3:80", None, true),
            ("[::ffff:10.1.2.3]:80", None, true),
            ("10.1.2.3:80", Some("forwarded"), true),
            ("10.1.2.3:80", Some("x-forwarded-for"), false),
            ("203.0.113.1:80", None, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(header.map(|name| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static("unknown"),
                )
            }));
            let found = proxies.missing_header(peer.parse().unwrap(), &headers);
            let expected = missing.then(|| HeaderName::from_static("x-forwarded-for"));
            assert_eq!(found, expected, "{peer} {header:?}");
        }
        assert!(!proxies.is_empty() && TrustedProxies::default().is_empty());
    }

    /// J5: for an invalid header the client's address is the proxy's; invalid elements before the
    /// client's are ignored.
    #[test]
    fn invalid_elements_are_ignored() {
        let proxies = trusting(ProxyHeader::XForwardedFor);
        for value in [
            "",
            "unknown",
            "198.51.100.1,",
            "a, 10.9.9.9",
            "1.2.3",
            "1.2.3.4:99999",
            "[10.0.0.1]",
            "\u{e9}",
        ] {
            assert_eq!(
                client(&proxies, "10.1.2.3", &[value]),
                "10.1.2.3",
                "{value}"
            );
        }
        assert_eq!(
            client(&proxies, "10.1.2.3", &["\u{e9}", "garbage, 198.51.100.1"]),
            "198.51.100.1"
        );
        let long = ["10.9.9.9"; 100].join(",");
        assert_eq!(
            client(&proxies, "10.1.2.3", &[&format!("198.51.100.1,{long}")]),
            "10.9.9.9"
        );
    }

    /// J5: `Forwarded` is read in the same way; its other parameters are ignored.
    #[test]
    fn the_standard_header() {
        let proxies = trusting(ProxyHeader::Forwarded);
        for (value, expected) in [
            ("for=198.51.100.1", "198.51.100.1"),
            (
                "For=\"198.51.100.1:80\"; proto=https;by=10.0.0.1",
                "198.51.100.1",
            ),
            (
                "for=1.1.1.1, by=x;for=\"[2001:db8:bb::1]:4711\";host=a",
                "2001:db8:bb::1",
            ),
            ("for=198.51.100.1, for=10.9.9.9", "198.51.100.1"),
            ("for=unknown", "10.1.2.3"),
            ("for=_hidden", "10.1.2.3"),
            ("proto=https", "10.1.2.3"),
            ("for=198.51.100.1;for=198.51.100.2", "10.1.2.3"),
            ("for=\"198.51.100.1", "10.1.2.3"),
            ("by=\"a,for=198.51.100.1\"", "10.1.2.3"),
        ] {
            assert_eq!(client(&proxies, "10.1.2.3", &[value]), expected, "{value}");
        }
    }

    #[test]
    fn networks_are_parsed() {
        for good in ["10.0.0.0/8", "10.1.2.3", "::1", "2001:db8::/32"] {
            assert!(
                TrustedProxies::new([good], ProxyHeader::default()).is_ok(),
                "{good}"
            );
        }
        assert_eq!(TrustedProxyError(String::new()).code(), "settings.network");
        for bad in ["", "10.0.0.0/33", "example.com", "10.0.0"] {
            assert_eq!(
                TrustedProxies::new([bad], ProxyHeader::default()).unwrap_err(),
                TrustedProxyError(bad.to_owned()),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_header_panics(values in prop::collection::vec("[0-9a-f.:,;=\"\\[\\] for]{0,40}", 0..4)) {
            for header in [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded] {
                let values: Vec<_> = values.iter().map(String::as_str).collect();
                client(&trusting(header), "10.1.2.3", &values);
            }
        }
    }
}
