//! [`NoProxy`]: the hosts of `NO_PROXY`.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// The hosts that are requested without a proxy.
///
/// Entries are separated by commas or spaces: `*` for all hosts, a name for itself and its
/// subdomains (with or without a leading `.` or `*.`), an address, or a network such as
/// `10.0.0.0/8`. An entry with a port applies only to that port. Any other entry matches nothing.
#[derive(Default)]
pub(super) struct NoProxy(Vec<Entry>);

struct Entry {
    hosts: Hosts,
    /// `None` for every port.
    port: Option<u16>,
}

enum Hosts {
    /// Every host.
    All,
    /// A name and its subdomains.
    Domain(String),
    /// An address or a network.
    Network(IpNet),
}

impl NoProxy {
    /// Parses the value of the variable.
    pub(super) fn parse(text: &str) -> Self {
        let entries =
            text.split(|character: char| character == ',' || character.is_ascii_whitespace());
        Self(
            entries
                .filter(|entry| !entry.is_empty())
                .filter_map(Entry::parse)
                .collect(),
        )
    }

    /// Whether a URL is requested without a proxy.
    pub(super) fn contains(&self, url: &Url) -> bool {
        self.0.iter().any(|entry| entry.contains(url))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        if let Some(hosts) = Hosts::parse(text) {
            return Some(Self { hosts, port: None });
        }
        let (host, port) = text.rsplit_once(':')?;
        Some(Self {
            hosts: Hosts::parse(host)?,
            port: Some(port.parse().ok()?),
        })
    }

    fn contains(&self, url: &Url) -> bool {
        self.port
            .is_none_or(|port| url.port_or_known_default() == Some(port))
            && self.hosts.contains(url)
    }
}

impl Hosts {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        if let Some((address, bits)) = text.split_once('/') {
            return IpNet::new(address_of(address)?, bits.parse().ok()?)
                .ok()
                .map(Self::Network);
        }
        if let Some(address) = address_of(text) {
            return Some(Self::Network(address.into()));
        }
        let name = text
            .strip_prefix("*.")
            .or_else(|| text.strip_prefix('.'))
            .unwrap_or(text);
        match Host::parse(name.strip_suffix('.').unwrap_or(name)) {
            Ok(Host::Domain(name)) => Some(Self::Domain(name)),
            _ => None,
        }
    }

    fn contains(&self, url: &Url) -> bool {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(name)) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                return match self {
                    Self::All => true,
                    Self::Domain(domain) => name
                        .strip_suffix(domain.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
                    Self::Network(_) => false,
                };
            }
            None => return false,
        };
        match self {
            Self::All => true,
            Self::Domain(_) => false,
            // An IPv4-mapped IPv6 address counts as its IPv4 address.
            Self::Network(network) => network.contains(&address.to_canonical()),
        }
    }
}

/// Parses an address, with or without brackets.
fn address_of(text: &str) -> Option<IpAddr> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    inner.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G6: names match at label boundaries, addresses and networks by their bits, and ports if the
    /// entry has one.
    #[test]
    fn entries_of_no_proxy() {
        for (entries, url, expected) in [
            ("corp.example", "https://corp.example/", true),
            ("corp.example", "https://a.b.Corp.Example/", true),
            ("corp.example", "https://a.corp.example./", true),
            (".corp.example", "https://a.corp.example/", true),
            ("*.corp.example", "https://a.corp.example/", true),
            ("CORP.example.", "https://a.corp.example/", true),
            ("corp.example", "https://evilcorp.example/", false),
            ("corp.example", "https://corp.example.evil/", false),
            (
                "a.example b.example,\tc.example",
                "https://b.example/",
                true,
            ),
            ("a.example,,c.example", "https://c.example/", true),
            ("*", "https://anything.example/", true),
            ("*", "https://9.9.9.9/", true),
            ("10.0.0.1", "https://10.0.0.1/", true),
            ("10.0.0.1", "https://0x0a000001/", true),
            ("10.0.0.1", "https://10.0.0.11/", false),
            ("10.0.0.0/8", "https://10.200.3.4/", true),
            ("10.0.0.0/8", "https://11.0.0.0/", false),
            ("10.0.0.0/8", "https://[::ffff:10.0.0.1]/", true),
            ("0.0.0.0/0", "https://9.9.9.9/", true),
            ("10.0.0.0/33", "https://10.0.0.0/", false),
            ("fd00::/8", "https://[fdab::1]/", true),
            ("[fd00::1]", "https://[fd00::1]/", true),
            ("fd00::1", "https://[fd00::2]/", false),
            ("10.0.0.0/8", "https://a.example/", false),
            ("a.example:8443", "https://a.example:8443/", true),
            ("a.example:443", "https://a.example/", true),
            ("a.example:8443", "https://a.example/", false),
            ("[fd00::1]:443", "https://[fd00::1]/", true),
            ("a.example:x", "https://a.example/", false),
            ("", "https://a.example/", false),
            (".", "https://a.example/", false),
        ] {
            let contained = NoProxy::parse(entries).contains(&Url::parse(url).unwrap());
            assert_eq!(contained, expected, "{entries:?} {url}");
        }
    }
}
