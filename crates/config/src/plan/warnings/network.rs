use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Config, file::Upstream, shown_url};
use portcullis_metadata::syntax::is_loopback;
use url::{Host, Url};

/// Adds warnings about the addresses of the listener, of `base_url` and of upstreams.
pub(super) fn warn(
    config: &Config,
    base_url: &Url,
    is_container: bool,
    warnings: &mut Vec<String>,
) {
    // In the container image, the port is open to what the container's network permits.
    warnings.extend(open_listener(config, base_url).filter(|_| !is_container));
    warnings.extend(other_address(config, base_url));
    for (position, resource) in config.resource.iter().enumerate() {
        let Upstream::Http(text) = &resource.upstream else {
            continue;
        };
        let Ok(upstream) = Url::parse(text) else {
            continue;
        };
        let key = format!("resource[{position}].upstream.http = {:?}", shown_url(text));
        if is_this_server(config, base_url, &upstream) {
            warnings.push(format!(
                "{key} is this server itself, so that requests would go round in circles; write the address of the MCP server"
            ));
        } else if is_public(&upstream) {
            warnings.push(format!(
                "{key} is a public address, so that clients can reach the MCP server without a token; let it listen on \
                 127.0.0.1 or in a private network, or admit only this server there"
            ));
        }
    }
}

/// Warns of plain HTTP on all addresses. With a `base_url` on loopback, there is another warning.
fn open_listener(config: &Config, base_url: &Url) -> Option<String> {
    let is_open = config.listen.ip().is_unspecified() && !is_loopback(base_url);
    (is_open && config.tls.is_none() && config.trusted_proxies.is_empty()).then(|| {
        format!(
            "listen = \"{}\" serves plain http on all addresses, so that others on the network can read tokens; set [tls], or \
             listen on the address to which the TLS proxy connects, or name the proxy in trusted_proxies",
            config.listen
        )
    })
}

/// Warns of a `base_url` at whose port or address nothing listens, or plain HTTP is served.
fn other_address(config: &Config, base_url: &Url) -> Option<String> {
    let listen = config.listen;
    let port = base_url.port_or_known_default()?;
    if listen.port() == 0 {
        return None;
    }
    let differs = |what: &str, fix: &str| {
        Some(format!(
            "base_url = {:?} does not fit listen = \"{listen}\": {what}; {fix}",
            config.base_url
        ))
    };
    let has_proxy = !config.trusted_proxies.is_empty();
    let is_direct = base_url.scheme() == "http" || (config.tls.is_some() && is_loopback(base_url));
    if is_direct && listen.ip().is_loopback() && !has_proxy {
        if port != listen.port() {
            return differs(
                "clients connect to another port",
                "use the same port in both, or name the proxy in trusted_proxies",
            );
        }
        let is_other = match base_url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address) != listen.ip(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address) != listen.ip(),
            _ => false,
        };
        if is_other {
            return differs(
                "clients connect to another address",
                "use the same address in both",
            );
        }
    }
    let is_plain = base_url.scheme() == "https" && config.tls.is_none() && !has_proxy;
    if is_plain && port == listen.port() && (is_loopback(base_url) || !listen.ip().is_loopback()) {
        return differs(
            "clients use TLS on a port where this server speaks plain http",
            "set [tls], or use another port in listen behind a proxy that terminates TLS",
        );
    }
    if config.tls.is_some() && listen.ip().is_loopback() && !is_loopback(base_url) && !has_proxy {
        return differs(
            "only programs on this machine can connect",
            &format!(
                "write listen = \"0.0.0.0:{port}\"; behind a local proxy, remove [tls], or name the proxy in trusted_proxies"
            ),
        );
    }
    None
}

/// Whether requests to the upstream arrive at this server.
fn is_this_server(config: &Config, base_url: &Url, upstream: &Url) -> bool {
    let listen = config.listen;
    let is_own = |address: IpAddr| {
        // A connection to the unspecified address arrives at the loopback address.
        let address = match address.to_canonical() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            address => address,
        };
        address == listen.ip().to_canonical()
            || (address.is_loopback() && listen.ip().is_unspecified())
    };
    let arrives = match upstream.host() {
        Some(Host::Ipv4(address)) => is_own(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_own(IpAddr::V6(address)),
        _ => is_loopback(upstream) && (listen.ip().is_loopback() || listen.ip().is_unspecified()),
    };
    let is_endpoint = config
        .resource
        .iter()
        .any(|resource| resource.endpoint == upstream.path());
    (arrives && upstream.port_or_known_default() == Some(listen.port()))
        || (upstream.origin() == base_url.origin() && is_endpoint)
}

/// Whether the host is a literal public address.
fn is_public(upstream: &Url) -> bool {
    match upstream.host() {
        Some(Host::Ipv4(address)) => is_public_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public_address(IpAddr::V6(address)),
        _ => false,
    }
}

/// Whether an address is neither of this machine nor of a private network.
pub fn is_public_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            let is_local =
                v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified();
            !is_local && !is_shared && !v4.is_multicast() && !v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            let is_local = v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local();
            !is_local && !v6.is_unique_local() && !v6.is_multicast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_text;

    /// The settings of one configuration.
    #[derive(Clone, Copy, Debug)]
    struct Setup {
        listen: &'static str,
        base_url: &'static str,
        upstream: &'static str,
        /// A further line at the top of the file.
        more: &'static str,
    }

    /// A server behind a proxy on the same machine, without a warning.
    const BEHIND_PROXY: Setup = Setup {
        listen: "127.0.0.1:3000",
        base_url: "https://mcp.example.com",
        upstream: "http://127.0.0.1:8000/mcp",
        more: "",
    };
    /// A server on loopback, without a warning.
    const LOCAL: Setup = Setup {
        base_url: "http://127.0.0.1:3000",
        ..BEHIND_PROXY
    };
    const TLS: &str = "tls = { certificates = \"c\", key = \"k\" }";
    const PROXY: &str = "trusted_proxies = [\"10.0.0.0/8\"]";
    const TLS_BEHIND_PROXY: &str =
        "trusted_proxies = [\"127.0.0.1\"]\ntls = { certificates = \"c\", key = \"k\" }";

    fn warned(setup: Setup, is_container: bool) -> Vec<String> {
        let Setup {
            listen,
            base_url,
            upstream,
            more,
        } = setup;
        let config = from_text(&format!(
            "listen = \"{listen}\"\nbase_url = \"{base_url}\"\n{more}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = {{ http \
             = \"{upstream}\" }}"
        ));
        let mut warnings = Vec::new();
        warn(
            &config.unwrap(),
            &Url::parse(base_url).unwrap(),
            is_container,
            &mut warnings,
        );
        warnings
    }

    /// J9: addresses that fit cause no warning.
    #[test]
    fn sound_addresses_cause_no_warning() {
        for setup in [
            BEHIND_PROXY,
            LOCAL,
            Setup {
                base_url: "http://localhost:3000",
                ..LOCAL
            },
            Setup {
                listen: "[::1]:3000",
                base_url: "http://[::1]:3000",
                ..LOCAL
            },
            Setup {
                listen: "127.0.0.1:0",
                ..LOCAL
            },
            Setup {
                base_url: "http://127.0.0.1:8080",
                more: PROXY,
                ..LOCAL
            },
            Setup {
                listen: "0.0.0.0:3000",
                base_url: "http://localhost:8080",
                ..LOCAL
            },
            Setup {
                listen: "10.0.0.5:3000",
                upstream: "http://10.0.0.6:3000/mcp",
                ..BEHIND_PROXY
            },
            Setup {
                listen: "0.0.0.0:3000",
                upstream: "http://mcp:3000/mcp",
                more: PROXY,
                ..BEHIND_PROXY
            },
            Setup {
                listen: "0.0.0.0:443",
                upstream: "https://[fd00::1]/mcp",
                more: TLS,
                ..BEHIND_PROXY
            },
            Setup {
                listen: "0.0.0.0:8443",
                upstream: "https://tools.internal/mcp",
                more: TLS,
                ..BEHIND_PROXY
            },
            Setup {
                upstream: "http://172.17.0.1:8000/mcp",
                ..BEHIND_PROXY
            },
            Setup {
                listen: "10.0.0.5:3000",
                upstream: "http://0.0.0.0:3000/mcp",
                ..BEHIND_PROXY
            },
            Setup {
                listen: "127.0.0.1:3443",
                base_url: "https://localhost:3443",
                more: TLS,
                ..BEHIND_PROXY
            },
            Setup {
                base_url: "https://localhost:3443",
                ..BEHIND_PROXY
            },
            Setup {
                more: TLS_BEHIND_PROXY,
                ..BEHIND_PROXY
            },
            Setup {
                base_url: "https://localhost:3443",
                more: TLS_BEHIND_PROXY,
                ..BEHIND_PROXY
            },
            Setup {
                upstream: "https://mcp.example.com/backend",
                ..BEHIND_PROXY
            },
        ] {
            assert_eq!(warned(setup, false), Vec::<String>::new(), "{setup:?}");
        }
    }

    /// J9: the network of a container decides who can connect to its port.
    #[test]
    fn an_open_listener_of_a_container_causes_no_warning() {
        let open = Setup {
            listen: "0.0.0.0:3000",
            ..BEHIND_PROXY
        };
        assert_eq!(warned(open, false).len(), 1);
        assert_eq!(warned(open, true), Vec::<String>::new());
    }

    /// J9: addresses that do not fit, an open listener, and upstreams that are public or this
    /// server cause a warning.
    #[test]
    fn unsound_addresses_cause_a_warning() {
        const OF_UPSTREAM: &str = "resource[0].upstream.http = ";
        for (setup, start, words) in [
            (
                Setup {
                    listen: "0.0.0.0:3000",
                    ..BEHIND_PROXY
                },
                "listen = ",
                "set [tls]",
            ),
            (
                Setup {
                    listen: "[::]:3000",
                    ..BEHIND_PROXY
                },
                "listen = ",
                "trusted_proxies",
            ),
            (
                Setup {
                    base_url: "http://127.0.0.1:4000",
                    ..LOCAL
                },
                "base_url = ",
                "another port",
            ),
            (
                Setup {
                    base_url: "http://[::1]:3000",
                    ..LOCAL
                },
                "base_url = ",
                "another address",
            ),
            (
                Setup {
                    listen: "10.0.0.5:443",
                    ..BEHIND_PROXY
                },
                "base_url = ",
                "plain http",
            ),
            (
                Setup {
                    base_url: "https://localhost:3000",
                    ..LOCAL
                },
                "base_url = ",
                "plain http",
            ),
            (
                Setup {
                    base_url: "https://localhost:3443",
                    more: TLS,
                    ..BEHIND_PROXY
                },
                "base_url = ",
                "another port",
            ),
            (
                Setup {
                    more: TLS,
                    ..BEHIND_PROXY
                },
                "base_url = ",
                "\"0.0.0.0:443\"",
            ),
            (
                Setup {
                    upstream: "http://localhost:3000/mcp",
                    ..BEHIND_PROXY
                },
                OF_UPSTREAM,
                "itself",
            ),
            (
                Setup {
                    upstream: "http://[::ffff:127.0.0.1]:3000/mcp",
                    ..BEHIND_PROXY
                },
                OF_UPSTREAM,
                "itself",
            ),
            (
                Setup {
                    upstream: "http://0.0.0.0:3000/mcp",
                    ..BEHIND_PROXY
                },
                OF_UPSTREAM,
                "itself",
            ),
            (
                Setup {
                    upstream: "https://mcp.example.com/mcp",
                    ..BEHIND_PROXY
                },
                OF_UPSTREAM,
                "itself",
            ),
            (
                Setup {
                    upstream: "http://203.0.113.9/mcp",
                    ..BEHIND_PROXY
                },
                OF_UPSTREAM,
                "public",
            ),
            (
                Setup {
                    upstream: "https://[2620:fe::fe]/mcp",
                    ..BEHIND_PROXY
                },
                OF_UPSTREAM,
                "public",
            ),
            (
                Setup {
                    listen: "0.0.0.0:80",
                    upstream: "http://127.0.0.1/mcp",
                    more: PROXY,
                    ..BEHIND_PROXY
                },
                OF_UPSTREAM,
                "itself",
            ),
        ] {
            let warnings = warned(setup, false);
            assert_eq!(warnings.len(), 1, "{setup:?}: {warnings:?}");
            assert!(warnings[0].starts_with(start), "{warnings:?}");
            assert!(warnings[0].contains(words), "{warnings:?}");
        }
    }
}
