//! [`Reach`]: from where an address can be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far an address reaches, after forms that carry an IPv4 address are unwrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anybody can reach it.
    Public,
    /// This machine.
    Loopback,
    /// This site: RFC 1918, unique-local, shared address space.
    Private,
    /// The link: the addresses of a machine's own network segment, at which clouds serve credentials too.
    LinkLocal,
    /// The other addresses at which clouds serve credentials.
    CloudMetadata,
    /// Multicast, unspecified, documentation and reserved: no document that a peer names is served there.
    Special,
}

pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

/// Addresses outside the special ranges at which clouds serve instance credentials.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba Cloud
    Ipv4Addr::new(168, 63, 129, 16),   // Azure
    Ipv4Addr::new(192, 0, 0, 192),     // Oracle Cloud
];
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254), // AWS
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254), // Google Cloud
];

fn reach_v4(address: Ipv4Addr) -> Reach {
    if METADATA_V4.contains(&address) {
        return Reach::CloudMetadata;
    }
    match address.octets() {
        [127, ..] => Reach::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Reach::Private,
        [169, 254, ..] => Reach::LinkLocal,
        [0, ..]
        | [192, 0, 0, _]
        | [192, 0, 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => Reach::Special,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    if address == Ipv6Addr::LOCALHOST {
        return Reach::Loopback;
    }
    if METADATA_V6.contains(&address) {
        return Reach::CloudMetadata;
    }
    if let Some(embedded) = embedded_v4(address) {
        return reach_v4(embedded);
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => Reach::Private,
        [0xfe80..=0xfebf, ..] => Reach::LinkLocal,
        // Teredo and the other IETF protocol assignments, and the two documentation ranges.
        [0x2001, 0x0000..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => Reach::Special,
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Special,
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, NAT64 (RFC 6052 well-known prefix), 6to4.
/// IPv4-compatible (`::a.b.c.d`) and locally assigned NAT64 (`64:ff9b:1::/48`) fall into the special rest.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let (start, end) = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x0064, 0xff9b, 0, 0, 0, 0, ..] => (12, 16),
        [0x2002, ..] => (2, 6),
        _ => return None,
    };
    <[u8; 4]>::try_from(&octets[start..end]).ok().map(Ipv4Addr::from)
}
