//! Names of private networks and of cloud metadata services.

/// The domains of private networks: RFC 6761 section 6.3, RFC 6762 section 3, RFC 8375, the
/// reservation of `internal` by ICANN (2024), and the domain that systems give to hosts without
/// one.
const PRIVATE_DOMAINS: [&str; 5] = ["localhost", "local", "home.arpa", "internal", "localdomain"];

/// The names of the metadata services of Google Cloud and AWS.
const METADATA_NAMES: [&str; 3] = [
    "metadata.google.internal",
    "metadata.goog",
    "instance-data.ec2.internal",
];

/// Returns whether a name has one label or is in a domain of private networks.
pub(super) fn is_private(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    !name.contains('.')
        || PRIVATE_DOMAINS
            .into_iter()
            .any(|domain| is_in(name, domain))
}

/// Returns whether a name is that of a cloud metadata service, or a subdomain of it.
pub(super) fn is_cloud_metadata(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    METADATA_NAMES.into_iter().any(|domain| is_in(name, domain))
}

/// Whether a name is a domain or one of its subdomains.
fn is_in(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use crate::{UrlPolicy, UrlPolicyError};

    const PEER: UrlPolicy = UrlPolicy::Peer {
        loopback_http: false,
        private_addresses: false,
    };
    const PRIVATE: UrlPolicy = UrlPolicy::Peer {
        loopback_http: false,
        private_addresses: true,
    };

    /// G6: a proxy resolves names itself, so a peer's URL must not have an address, in any
    /// notation, or the name of a private network.
    #[test]
    fn a_peer_cannot_reach_a_private_network_through_the_proxy() {
        let proxied = |policy: UrlPolicy, host: &str| {
            policy.check_proxied(&Url::parse(&format!("https://{host}/")).unwrap())
        };
        let private = [
            "9.9.9.9",
            "10.0.0.1",
            "167772161",
            "0x0a000001",
            "012.0.0.1",
            "[::ffff:10.0.0.1]",
            "[2620:fe::fe]",
            "localhost",
            "localhost.",
            "a.localhost",
            "intranet",
            "INTRANET.",
            "auth.internal",
            "auth.corp.internal.",
            "printer.local",
            "nas.home.arpa",
            "host.localdomain",
        ];
        for host in private {
            assert_eq!(
                proxied(PEER, host),
                Err(UrlPolicyError::PrivateName),
                "{host}"
            );
            for policy in [PRIVATE, UrlPolicy::StartOrigin, UrlPolicy::Operator] {
                assert_eq!(proxied(policy, host), Ok(()), "{host}");
            }
        }
        for host in [
            "auth.example.com",
            "internal.example.com",
            "notlocal",
            "xinternal.example",
            "local.example.",
        ] {
            let is_single = !host.contains('.');
            assert_eq!(proxied(PEER, host).is_err(), is_single, "{host}");
        }
        for host in [
            "metadata.google.internal",
            "METADATA.google.internal.",
            "metadata.goog",
        ] {
            for policy in [PEER, PRIVATE, UrlPolicy::StartOrigin] {
                assert_eq!(
                    proxied(policy, host),
                    Err(UrlPolicyError::PrivateName),
                    "{host}"
                );
            }
        }
    }
}
