//! Addresses to listen on: an address and a port, or a name such as `localhost` and a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use serde::{Deserialize, Deserializer, de};

use super::shown_url;

/// What a `listen` setting looks like, for messages.
const EXAMPLE: &str = "write an address and a port, such as \"127.0.0.1:3000\"";

/// Reads an address and a port. A name is resolved; of its addresses, the first IPv4 address is
/// used, else the first.
///
/// # Errors
/// Fails when the text is neither, or the name has no address. The message names the fix.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let shown = format!("{:?}", shown_url(text));
    if text.contains("://") && !text.starts_with("unix:") {
        return Err(format!("{shown} is a URL; {EXAMPLE}"));
    }
    if text.starts_with("unix:") || text.starts_with('/') {
        return Err(format!(
            "{shown} is a Unix socket, on which this server cannot listen; {EXAMPLE}"
        ));
    }
    if let Some((address, port)) = unbracketed(text) {
        return Err(format!(
            "{shown} has an IPv6 address without brackets; write \"[{address}]:{port}\""
        ));
    }
    let Some((host, port)) = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':') || host.starts_with('['))
    else {
        let is_port = text.parse::<u16>().is_ok();
        let missing = if is_port {
            "is a port without an address"
        } else {
            "has no port"
        };
        return Err(format!("{shown} {missing}; {EXAMPLE}"));
    };
    if port.parse::<u16>().is_err() {
        return Err(format!(
            "{shown} has no port from 0 to 65535 after the colon; {EXAMPLE}"
        ));
    }
    if host.is_empty() || host == "*" {
        return Err(format!(
            "{shown} has no address; write \"127.0.0.1:{port}\" for this machine alone, or \"0.0.0.0:{port}\" for all networks"
        ));
    }
    let unknown = || format!("{shown} has a name that cannot be resolved; {EXAMPLE}");
    let addresses: Vec<SocketAddr> = text.to_socket_addrs().map_err(|_| unknown())?.collect();
    addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or(addresses.first())
        .copied()
        .ok_or_else(unknown)
}

/// Splits an IPv6 address without brackets from the port after it.
fn unbracketed(text: &str) -> Option<(Ipv6Addr, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    Some((address.parse().ok()?, port.parse().ok()?))
}

/// Returns the address to connect to from this machine: loopback for a listener on all addresses.
pub fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Reads the setting.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SocketAddr, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: names are resolved, and IPv4 comes first.
    #[test]
    fn names_are_resolved() {
        assert_eq!(
            parse("localhost:3000"),
            Ok(SocketAddr::from(([127, 0, 0, 1], 3000)))
        );
        assert_eq!(
            parse("127.0.0.1:0"),
            Ok(SocketAddr::from(([127, 0, 0, 1], 0)))
        );
        assert_eq!(parse("[::1]:3000").unwrap().to_string(), "[::1]:3000");
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_loopback() {
        for (listen, expected) in [
            ("0.0.0.0:3000", "127.0.0.1:3000"),
            ("[::]:3000", "[::1]:3000"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("127.0.0.1:3000", "127.0.0.1:3000"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn errors_name_the_fix() {
        for (text, fix) in [
            ("::1:3000", "[::1]:3000"),
            ("fe80::1:2:3000", "[fe80::1:2]:3000"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.ends_with(&format!("write \"{fix}\"")), "{error}");
        }
        for (text, words) in [
            ("127.0.0.1", "has no port"),
            ("localhost", "has no port"),
            ("::1", "has no port"),
            ("3000", "is a port without an address"),
            (":3000", "\"0.0.0.0:3000\""),
            ("*:3000", "\"0.0.0.0:3000\""),
            ("127.0.0.1:http", "has no port from 0 to 65535"),
            ("127.0.0.1:70000", "has no port from 0 to 65535"),
            ("http://127.0.0.1:3000", "is a URL"),
            ("unix:/run/mcp.sock", "is a Unix socket"),
            ("unix:///run/mcp.sock", "is a Unix socket"),
            ("/run/mcp.sock", "is a Unix socket"),
            ("no such host.invalid:1", "cannot be resolved"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
            assert!(
                error.contains("write \"127.0.0.1:3000\"") || error.contains(EXAMPLE),
                "{text}: {error}"
            );
        }
    }
}
