//! [`FilteringResolver`]: name resolution under a URL policy.

use std::{io, net::SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

use super::BoxFuture;
use crate::url_policy::{UrlPolicy, UrlPolicyError};

/// Resolves a name.
pub(crate) type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Resolves a name with the system's resolver.
pub(crate) fn system(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

/// A resolver that removes the addresses that the policy forbids. The connection uses the remaining
/// addresses, so a name cannot resolve to another address after the check.
pub(crate) struct FilteringResolver {
    policy: UrlPolicy,
    lookup: Lookup,
}

impl FilteringResolver {
    /// Resolves names with `lookup`, and removes the addresses that `policy` forbids.
    pub(crate) fn new(policy: UrlPolicy, lookup: Lookup) -> Self {
        Self { policy, lookup }
    }
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { policy, lookup } = *self;
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned())
                .await
                .map_err(Unresolved::Lookup)?;
            let allowed = allowed(policy, name.as_str(), found.into_iter())?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Why a name is not resolved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    /// The name is unknown, or no resolver responds.
    #[error("the lookup failed")]
    Lookup(#[source] io::Error),
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
}

/// Returns the addresses of a name that the policy allows. Fails with [`UrlPolicyError::Address`]
/// if it forbids all of them, [`Unresolved::NoAddress`] if there are none.
fn allowed(
    policy: UrlPolicy,
    name: &str,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let host = Url::parse(&format!("https://{name}/")).map_err(|_| Unresolved::NoAddress)?;
    let mut has_address = false;
    let allowed: Vec<_> = found
        .inspect(|_| has_address = true)
        .filter(|address| policy.allows_address(&host, address.ip()))
        .collect();
    if !allowed.is_empty() {
        return Ok(allowed);
    }
    Err(if has_address {
        UrlPolicyError::Address.into()
    } else {
        Unresolved::NoAddress.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: UrlPolicy = UrlPolicy::Peer {
        loopback_http: true,
        private_addresses: false,
    };

    fn filter(policy: UrlPolicy, name: &str, found: &[&str]) -> Result<Vec<String>, String> {
        let found = found
            .iter()
            .map(|address| SocketAddr::new(address.parse().unwrap(), 0));
        allowed(policy, name, found)
            .map(|left| {
                left.iter()
                    .map(|address| address.ip().to_string())
                    .collect()
            })
            .map_err(|error| error.to_string())
    }

    /// G6: the addresses to which a peer's name resolves are checked. A name with private addresses
    /// only is rejected.
    #[test]
    fn resolved_addresses_are_checked() {
        let forbidden = Err(UrlPolicyError::Address.to_string());
        assert_eq!(
            filter(
                PEER,
                "auth.example.com",
                &["10.0.0.7", "127.0.0.1", "fe80::1"]
            ),
            forbidden
        );
        assert_eq!(
            filter(PEER, "auth.example.com", &["10.0.0.7", "9.9.9.9"]),
            Ok(vec!["9.9.9.9".into()])
        );
        assert_eq!(
            filter(PEER, "localhost", &["127.0.0.1", "::1"]),
            Ok(vec!["127.0.0.1".into(), "::1".into()])
        );
        assert_eq!(
            filter(UrlPolicy::Operator, "auth.internal", &["10.0.0.7"]),
            Ok(vec!["10.0.0.7".into()])
        );
        assert_eq!(
            filter(UrlPolicy::Operator, "localhost", &["9.9.9.9"]),
            forbidden
        );
        assert_eq!(
            filter(PEER, "auth.example.com", &[]),
            Err(Unresolved::NoAddress.to_string())
        );
    }
}
