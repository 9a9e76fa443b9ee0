//! [`UrlPolicy::of_named`]: the policy for a URL in a document of a configured issuer.

use portcullis_metadata::syntax::is_loopback;
use url::{Host, Url};

use super::{
    UrlPolicy,
    address_reach::{Reach, reach},
    private_name,
};

impl UrlPolicy {
    /// Returns the policy for `named`, a URL that a document names which was fetched from `source`
    /// under this policy.
    ///
    /// Whoever can write that document, which is not always the operator of this process, must not
    /// choose addresses of the operator's network. [`Operator`](Self::Operator) therefore becomes
    /// [`Peer`](Self::Peer), unless both URLs have the same host. Private addresses are allowed
    /// only if the host of `source` is or resolves to one, and loopback only if it is loopback or
    /// private. The name is resolved for at most 5 s; through an egress proxy, only the name
    /// counts. The other policies stay as they are.
    pub async fn of_named(self, source: &Url, named: &Url) -> Self {
        if self != Self::Operator || source.host() == named.host() {
            return self;
        }
        Self::Peer {
            loopback_http: is_loopback(source),
            private_addresses: has_private_host(source).await,
        }
    }
}

/// Returns whether the host is, or resolves to, a private or loopback address.
async fn has_private_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_private(reach(address.into())),
        Some(Host::Ipv6(address)) => is_private(reach(address.into())),
        Some(Host::Domain(name)) => {
            private_name::is_private(name) || resolves_to_private(name).await
        }
        None => false,
    }
}

fn is_private(reach: Reach) -> bool {
    matches!(reach, Reach::Private | Reach::Loopback)
}

#[cfg(feature = "reqwest")]
async fn resolves_to_private(name: &str) -> bool {
    use std::time::Duration;

    use tokio::{net::lookup_host, time::timeout};

    match timeout(Duration::from_secs(5), lookup_host((name, 443))).await {
        Ok(Ok(mut addresses)) => addresses.any(|address| is_private(reach(address.ip()))),
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Without a client of its own, this crate does not resolve names.
#[cfg(not(feature = "reqwest"))]
async fn resolves_to_private(_: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G6: a URL in an issuer's metadata can be private or loopback only if the issuer's own host
    /// is, or if it is the same host.
    #[tokio::test]
    async fn a_public_issuer_cannot_name_private_addresses() {
        let url = |text: &str| Url::parse(text).unwrap();
        for (source, named, is_permitted) in [
            ("https://9.9.9.9", "https://8.8.8.8/keys", true),
            ("https://9.9.9.9", "https://10.0.0.1/keys", false),
            ("https://9.9.9.9", "https://127.0.0.1/keys", false),
            ("https://9.9.9.9", "http://127.0.0.1/keys", false),
            ("https://9.9.9.9", "https://169.254.169.254/keys", false),
            ("https://9.9.9.9", "https://9.9.9.9:6379/keys", true),
            ("https://10.0.0.1", "https://10.0.0.2/keys", true),
            ("https://10.0.0.1", "https://127.0.0.1/keys", true),
            ("https://10.0.0.1", "http://127.0.0.1/keys", false),
            ("https://10.0.0.1", "https://169.254.169.254/keys", false),
            ("https://auth.internal", "https://10.0.0.2/keys", true),
            ("http://localhost:8080", "http://127.0.0.1:9090/keys", true),
            (
                "https://localhost.example.invalid",
                "https://10.0.0.2/keys",
                false,
            ),
        ] {
            let named = url(named);
            let policy = UrlPolicy::Operator.of_named(&url(source), &named).await;
            assert_eq!(
                policy.check(&named).is_ok(),
                is_permitted,
                "{source} {named}"
            );
        }
        let start = UrlPolicy::StartOrigin;
        assert_eq!(
            start
                .of_named(&url("https://9.9.9.9"), &url("https://10.0.0.1"))
                .await,
            start
        );
    }
}
