use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// From where an address is reachable. An IPv6 address that embeds an IPv4 address has the reach of
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The Internet.
    Public,
    /// This machine only.
    Loopback,
    /// This site: RFC 1918, unique-local and shared addresses.
    Private,
    /// This network segment only. Cloud metadata services have such addresses.
    LinkLocal,
    /// The other addresses of cloud metadata services.
    CloudMetadata,
    /// Multicast, unspecified, documentation and reserved addresses. They never host metadata
    /// documents.
    Special,
}

pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

/// Cloud metadata services outside the special ranges.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba Cloud
    Ipv4Addr::new(168, 63, 129, 16),   // Azure
    Ipv4Addr::new(192, 0, 0, 192),     // Oracle Cloud
];
/// As [`METADATA_V4`].
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
        // Teredo and other IETF protocol assignments, and the two documentation ranges.
        [0x2001, 0x0000..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => {
            Reach::Special
        }
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Special,
    }
}

/// Returns the IPv4 address in an IPv4-mapped, NAT64 (RFC 6052 well-known prefix) or 6to4 address.
/// IPv4-compatible (`::a.b.c.d`) and locally assigned NAT64 (`64:ff9b:1::/48`) addresses are
/// special.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let (start, end) = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x0064, 0xff9b, 0, 0, 0, 0, ..] => (12, 16),
        [0x2002, ..] => (2, 6),
        _ => return None,
    };
    <[u8; 4]>::try_from(&octets[start..end])
        .ok()
        .map(Ipv4Addr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_its_reach() {
        for (expected, addresses) in [
            (
                Reach::Public,
                &[
                    "8.8.8.8",
                    "172.32.0.1",
                    "100.128.0.1",
                    "2606:4700::1",
                    "64:ff9b::808:808",
                ][..],
            ),
            (
                Reach::Loopback,
                &[
                    "127.0.0.1",
                    "127.255.255.255",
                    "::1",
                    "::ffff:127.0.0.1",
                    "2002:7f00:1::",
                ],
            ),
            (
                Reach::Private,
                &[
                    "10.1.2.3",
                    "172.16.0.1",
                    "192.168.0.1",
                    "100.64.0.1",
                    "fd00::1",
                    "::ffff:10.0.0.1",
                ],
            ),
            (
                Reach::LinkLocal,
                &["169.254.169.254", "fe80::1", "64:ff9b::a9fe:a9fe"],
            ),
            (
                Reach::CloudMetadata,
                &[
                    "100.100.100.200",
                    "168.63.129.16",
                    "fd00:ec2::254",
                    "::ffff:192.0.0.192",
                ],
            ),
            (
                Reach::Special,
                &[
                    "0.0.0.0",
                    "224.0.0.1",
                    "255.255.255.255",
                    "192.0.2.1",
                    "::",
                    "::7f00:1",
                    "ff02::1",
                ],
            ),
            (
                Reach::Special,
                &[
                    "2001:db8::1",
                    "2001::1",
                    "3fff::1",
                    "64:ff9b:1::a00:1",
                    "4000::1",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(reach(address.parse().unwrap()), expected, "{address}");
            }
        }
    }
}
