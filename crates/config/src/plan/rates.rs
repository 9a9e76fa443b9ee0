use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::anyhow;
use portcullis_guard::{ProxyHeader, TrustedProxies, limit::Rate};

use crate::{
    Config, Diagnostics,
    file::{self, ForwardedHeader},
};

/// The limits that all resources share.
pub struct RatesPlan {
    /// That of a client address.
    pub per_address: Option<Rate>,
    /// That of requests without a valid token from a client address.
    pub rejected_per_address: Option<Rate>,
    /// That of a principal.
    pub per_principal: Option<Rate>,
    /// The number of counters of each limit.
    pub entries: usize,
    /// The proxies whose client address is believed.
    pub proxies: TrustedProxies,
}

/// Validates the rate limits and the trusted proxies, and adds an error for each invalid value.
///
/// Returns `None` if one is invalid.
pub(super) fn plan(config: &Config, errors: &mut Diagnostics<'_>) -> Option<RatesPlan> {
    let limits = &config.limits;
    let header = match config.trusted_proxy_header {
        ForwardedHeader::XForwardedFor => ProxyHeader::XForwardedFor,
        ForwardedHeader::Forwarded => ProxyHeader::Forwarded,
    };
    if !(1_000..=10_000_000).contains(&limits.rate_entries) {
        errors.add(
            "limits",
            format!(
                "limits.rate_entries = {} is outside 1000 to 10000000",
                limits.rate_entries
            ),
        );
    }
    let per_address = errors.take("limits.per_address", rate(limits.per_address.as_ref()));
    let rejected = rate(Some(&limits.rejected_per_address));
    let rejected_per_address = errors.take("limits.rejected_per_address", rejected);
    let per_principal = errors.take("limits.per_principal", rate(limits.per_principal.as_ref()));
    let proxies = config.trusted_proxies.iter().map(String::as_str);
    let each = errors.take_all(
        "trusted_proxies",
        proxies.clone().map(|proxy| {
            TrustedProxies::new([proxy], header)
                .map_err(|error| anyhow!("{error}; {}", proxy_fix(proxy)))
        }),
    );
    let proxies = each.and_then(|_| TrustedProxies::new(proxies, header).ok());
    Some(RatesPlan {
        per_address: per_address?,
        rejected_per_address: rejected_per_address?,
        per_principal: per_principal?,
        entries: limits.rate_entries,
        proxies: proxies?,
    })
}

/// What to write in place of a text that is no trusted proxy.
fn proxy_fix(text: &str) -> String {
    let address = text.split('/').next().unwrap_or_default();
    let listed: Vec<&str> = text
        .split([',', ';', ' '])
        .filter(|part| !part.is_empty())
        .collect();
    if listed.len() > 1 && listed.iter().all(|part| is_network(part)) {
        format!("write each in a string of its own: {listed:?}")
    } else if let Ok(address) = text.parse::<SocketAddr>() {
        format!("write \"{}\", without the port", address.ip())
    } else if address.parse::<Ipv4Addr>().is_ok() {
        "write a prefix of 0 to 32 after the slash".to_owned()
    } else if address.parse::<Ipv6Addr>().is_ok() {
        "write a prefix of 0 to 128 after the slash".to_owned()
    } else {
        "names are not resolved: write the address of the proxy, or its network".to_owned()
    }
}

fn is_network(text: &str) -> bool {
    TrustedProxies::new([text], ProxyHeader::default()).is_ok()
}

/// Validates a rate; `None` without a limit. Fails when the number or the period is out of its
/// range.
pub(super) fn rate(rate: Option<&file::RateLimit>) -> anyhow::Result<Option<Rate>> {
    Ok(rate
        .map(|rate| Rate::new(rate.requests, rate.per.0))
        .transpose()?)
}
