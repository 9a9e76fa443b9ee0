use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::{
    Config, container,
    file::{AdminListen, ForwardedHeader, Issuer, Upstream},
    shown_url,
};
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
    let unspecified = unspecified_host(base_url);
    let unspecified =
        unspecified.map(|problem| format!("base_url = {:?} {problem}", config.base_url));
    warnings.extend(unspecified.or_else(|| other_address(config, base_url)));
    warn_of_wide_proxies(config, warnings);
    warnings.extend(unused_header(config));
    warn_of_own_issuer(config, base_url, warnings);
    let has_services = may_have_services(is_container);
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
        } else if is_admin_listener(config, &upstream) {
            warnings.push(format!(
                "{key} is the listener of [admin]; write the address of the MCP server"
            ));
        } else if is_public(&upstream) {
            warnings.push(format!(
                "{key} is a public address, so that clients can reach the MCP server without a token; let it listen on \
                 127.0.0.1 or in a private network, or admit only this server there"
            ));
        } else if upstream.scheme() == "http" && is_public_name(&upstream, has_services) {
            warnings.push(format!(
                "{key} is plain http to a public name, so that others on the way can read and change requests; use https, \
                 or the name or address that the MCP server has in the private network"
            ));
        }
    }
}

/// The shortest prefixes of networks of one operator: 10.0.0.0/8, and fc00::/7 (RFC 4193).
const SHORTEST_PREFIX_V4: u8 = 8;
const SHORTEST_PREFIX_V6: u8 = 7;

/// Warns of networks of trusted proxies that have clients in them.
fn warn_of_wide_proxies(config: &Config, warnings: &mut Vec<String>) {
    let warned = config.trusted_proxies.iter().filter_map(|network| {
        let problem = network_problem(network)?;
        Some(format!("trusted_proxies has {network:?}, {problem}"))
    });
    warnings.extend(warned);
}

/// Returns the problem of a network of trusted proxies, and the fix. `None` for addresses.
fn network_problem(network: &str) -> Option<String> {
    let (address, prefix) = network.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let prefix: u8 = prefix.parse().ok()?;
    let shortest = match address {
        IpAddr::V4(_) => SHORTEST_PREFIX_V4,
        IpAddr::V6(_) => SHORTEST_PREFIX_V6,
    };
    if prefix < shortest {
        return Some(
            "which is more than the network of a proxy: whoever connects from there chooses, in a header, the address that rate \
             limits and logs use; list the addresses of your proxies, such as \"10.0.0.5\""
                .to_owned(),
        );
    }
    let first = first_address(address, prefix);
    (first != address).then(|| {
        format!(
            "which is an address in a network and trusts the whole network; write \"{address}\" for this address alone, or \
             \"{first}/{prefix}\" for the network"
        )
    })
}

/// Returns the first address of the network of an address.
fn first_address(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let host_bits = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & !host_bits).into()
        }
        IpAddr::V6(v6) => {
            let host_bits = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & !host_bits).into()
        }
    }
}

/// Warns of plain HTTP on all addresses. With a `base_url` on loopback, there is another warning.
fn open_listener(config: &Config, base_url: &Url) -> Option<String> {
    let is_open = config.listen.ip().is_unspecified() && !is_loopback(base_url);
    if !is_open || config.tls.is_some() {
        return None;
    }
    let mut proxies = config.trusted_proxies.iter();
    let fix = if proxies.len() == 0 {
        "set [tls], or listen on the address to which the TLS proxy connects, or name the proxy in trusted_proxies".to_owned()
    } else if proxies.all(|proxy| is_on_this_machine(proxy)) {
        let port = config.listen.port();
        format!(
            "only a proxy on this machine is in trusted_proxies: write listen = \"127.0.0.1:{port}\""
        )
    } else {
        return None;
    };
    Some(format!(
        "listen = \"{}\" serves plain http on all addresses, so that others on the network can read tokens; {fix}",
        config.listen
    ))
}

/// Whether a trusted proxy, an address or a network, is this machine.
fn is_on_this_machine(proxy: &str) -> bool {
    let (address, _) = proxy.split_once('/').unwrap_or((proxy, ""));
    address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback())
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
    // A proxy in front is another process, and cannot have the same address and port.
    let is_same_machine = is_loopback(base_url) && listen.ip().is_loopback();
    let is_plain =
        base_url.scheme() == "https" && config.tls.is_none() && (!has_proxy || is_same_machine);
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

/// Returns the problem of a `base_url` whose host is an address to listen on, and the fix. The
/// message follows the URL.
pub(in crate::plan) fn unspecified_host(base_url: &Url) -> Option<String> {
    let is_unspecified = match base_url.host()? {
        Host::Ipv4(address) => address.is_unspecified(),
        Host::Ipv6(address) => address.is_unspecified(),
        Host::Domain(_) => false,
    };
    let port = base_url.port();
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    is_unspecified.then(|| {
        format!(
            "has an address to listen on; write the name that clients use, such as \
             \"https://mcp.example.com\", or, for this machine alone, \"http://127.0.0.1{port}\""
        )
    })
}

/// Warns of a header that no proxy is trusted to send. It cannot be told apart from the default if
/// it is that.
fn unused_header(config: &Config) -> Option<String> {
    let is_unused = config.trusted_proxies.is_empty()
        && config.trusted_proxy_header != ForwardedHeader::default();
    is_unused.then(|| {
        format!(
            "trusted_proxy_header = \"{}\" has no effect without trusted_proxies; list the addresses of your proxies there, such as \
             trusted_proxies = [\"127.0.0.1\"], or remove it",
            config.trusted_proxy_header.as_str()
        )
    })
}

/// Warns of an issuer at the listener of a server that issues no tokens. With a `base_url` that is
/// not on loopback, there is another warning.
fn warn_of_own_issuer(config: &Config, base_url: &Url, warnings: &mut Vec<String>) {
    let issues_tokens = config.broker.is_some();
    let is_own = |issuer: &Issuer| {
        let url = Url::parse(&issuer.issuer);
        !issues_tokens
            && is_loopback(base_url)
            && url.is_ok_and(|url| arrives_at(config.listen, &url))
    };
    for (position, issuer) in config.issuer.iter().enumerate() {
        if is_own(issuer) {
            warnings.push(format!(
                "issuer[{position}].issuer = {:?} is this server itself, which issues no tokens; write the URL of the authorization server",
                shown_url(&issuer.issuer)
            ));
        }
    }
}

fn is_admin_listener(config: &Config, upstream: &Url) -> bool {
    let listen = config.admin.as_ref().map(|admin| &admin.listen);
    matches!(listen, Some(AdminListen::Tcp(address)) if arrives_at(*address, upstream))
}

/// Whether requests to the upstream arrive at this server.
fn is_this_server(config: &Config, base_url: &Url, upstream: &Url) -> bool {
    let is_endpoint = config
        .resource
        .iter()
        .any(|resource| resource.endpoint == upstream.path());
    arrives_at(config.listen, upstream) || (upstream.origin() == base_url.origin() && is_endpoint)
}

/// Whether requests to a URL arrive at a listener.
fn arrives_at(listen: SocketAddr, url: &Url) -> bool {
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
    let arrives = match url.host() {
        Some(Host::Ipv4(address)) => is_own(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_own(IpAddr::V6(address)),
        // Such a name is one of these two addresses (RFC 6761, section 6.3).
        _ => {
            let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            is_loopback(url) && addresses.into_iter().any(is_own)
        }
    };
    arrives && url.port_or_known_default() == Some(listen.port())
}

/// Whether the host is a literal public address.
fn is_public(upstream: &Url) -> bool {
    match upstream.host() {
        Some(Host::Ipv4(address)) => is_public_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public_address(IpAddr::V6(address)),
        _ => false,
    }
}

/// The ends of names that only a private network resolves (RFC 6761, RFC 6762, RFC 8375, and those
/// that ICANN has reserved or that containers use).
const PRIVATE_DOMAINS: [&str; 15] = [
    "arpa",
    "consul",
    "corp",
    "docker",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "private",
    "svc",
    "test",
];

/// Whether the host is a public address, or a name that the public DNS can have. It is not
/// resolved.
pub fn has_public_host(url: &Url) -> bool {
    is_public(url) || is_public_name(url, may_have_services(container::is_container()))
}

/// Whether names can be those of Services of Kubernetes. A container may be in a pod that does not
/// say so.
fn may_have_services(is_container: bool) -> bool {
    is_container || container::is_in_kubernetes()
}

/// Whether the host is a name that the public DNS can have. With `has_services`, a name of two
/// parts is that of a Service of Kubernetes and its namespace, such as `mcp.default`.
fn is_public_name(url: &Url, has_services: bool) -> bool {
    let Some(Host::Domain(name)) = url.host() else {
        return false;
    };
    match name.trim_end_matches('.').rsplit_once('.') {
        None => false,
        Some((name, _)) if has_services && !name.contains('.') => false,
        Some((_, top)) => !PRIVATE_DOMAINS.contains(&top),
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
mod tests;
