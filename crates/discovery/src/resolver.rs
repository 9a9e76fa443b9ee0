//! [`FilteringResolver`]: resolves names to the addresses that a policy admits.

use std::{io, net::SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

use crate::{BoxFuture, UrlPolicy, UrlPolicyError};

/// Finds what a name stands for.
pub(crate) type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// The system's own way.
pub(crate) fn system(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

/// A resolver, with the addresses that the policy does not admit taken out of its answer. The
/// connection goes to what is left, so that a name cannot resolve to one thing when judged and to another when
/// connected to.
pub(crate) struct FilteringResolver {
    policy: UrlPolicy,
    lookup: Lookup,
}

impl FilteringResolver {
    pub(crate) fn new(policy: UrlPolicy, lookup: Lookup) -> Self {
        Self { policy, lookup }
    }
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { policy, lookup } = *self;
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned()).await.map_err(|_| NoAddress)?;
            let admitted = admitted(policy, name.as_str(), found.into_iter())?;
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}

/// The name stands for no address at all.
#[derive(Debug, thiserror::Error)]
#[error("the name stands for no address")]
pub(crate) struct NoAddress;

fn admitted(
    policy: UrlPolicy,
    name: &str,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let host = Url::parse(&format!("https://{name}/")).map_err(|_| NoAddress)?;
    let mut any = false;
    let admitted: Vec<_> = found.inspect(|_| any = true).filter(|address| policy.admits(&host, address.ip())).collect();
    match admitted.is_empty() {
        false => Ok(admitted),
        true if any => Err(UrlPolicyError::Address.into()),
        true => Err(NoAddress.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: UrlPolicy = UrlPolicy::Peer { loopback_http: true, private_addresses: false };

    fn judge(policy: UrlPolicy, name: &str, found: &[&str]) -> Result<Vec<String>, String> {
        let found = found.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0));
        admitted(policy, name, found)
            .map(|left| left.iter().map(|address| address.ip().to_string()).collect())
            .map_err(|error| error.to_string())
    }

    /// G6: what a peer's name resolves to is judged, and a name that resolves to private addresses alone is refused.
    #[test]
    fn a_peers_name_is_judged_by_its_addresses() {
        let refused = Err(UrlPolicyError::Address.to_string());
        assert_eq!(judge(PEER, "auth.example.com", &["10.0.0.7", "127.0.0.1", "fe80::1"]), refused);
        assert_eq!(judge(PEER, "auth.example.com", &["10.0.0.7", "9.9.9.9"]), Ok(vec!["9.9.9.9".into()]));
        assert_eq!(judge(PEER, "localhost", &["127.0.0.1", "::1"]), Ok(vec!["127.0.0.1".into(), "::1".into()]));
        assert_eq!(judge(UrlPolicy::Operator, "auth.internal", &["10.0.0.7"]), Ok(vec!["10.0.0.7".into()]));
        assert_eq!(judge(UrlPolicy::Operator, "localhost", &["9.9.9.9"]), refused);
        assert_eq!(judge(PEER, "auth.example.com", &[]), Err(NoAddress.to_string()));
    }
}
