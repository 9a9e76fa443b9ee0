//! [`advice`]: what a user can do about an error.

use std::error::Error;

use portcullis_discovery::{CertificateProblem, FetchError, NetworkFailure, UrlPolicyError};

/// Returns the option or environment variable of the client commands that resolves an error, if there is one. It
/// examines the error and its causes.
pub fn advice(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(error) = current.downcast_ref::<FetchError>() {
            return advice_for_fetch(error);
        }
        next = current.source();
    }
    None
}

fn advice_for_fetch(error: &FetchError) -> Option<&'static str> {
    match error {
        FetchError::UrlPolicy(UrlPolicyError::Address | UrlPolicyError::PrivateName) => {
            Some("if the server may use your private network, add --allow-private")
        }
        FetchError::Network(network) => match (network.certificate_problem(), network.failure()) {
            (Some(CertificateProblem::UnknownIssuer), _) => Some(
                "to trust its certificate authority, name a PEM file: --ca-file for the host of the URL that you gave, \
                 SSL_CERT_FILE for all hosts",
            ),
            (Some(CertificateProblem::Expired), _) => {
                Some("the server's certificate must be renewed, if this machine's clock is right")
            }
            (Some(CertificateProblem::NotYetValid), _) => Some("check this machine's clock"),
            (Some(CertificateProblem::WrongName), _) => Some("use a host name for which the certificate is valid"),
            (_, NetworkFailure::Proxy) => {
                Some("check HTTPS_PROXY, or list the host in NO_PROXY if it can be reached directly")
            }
            (_, NetworkFailure::Resolve) => Some("if this network needs an egress proxy, set HTTPS_PROXY"),
            (_, NetworkFailure::NotTls) => Some("correct the port, or let the server use https"),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::{DiscoveryError, NetworkError};

    use super::*;
    use crate::ClientError;

    /// G6: the advice for an error names the option or variable that resolves it, at any depth.
    #[test]
    fn errors_name_what_helps() {
        let tls =
            |problem| FetchError::Network(NetworkError::new(NetworkFailure::Tls).with_certificate_problem(problem));
        for (error, helps) in [
            (FetchError::UrlPolicy(UrlPolicyError::Address), Some("--allow-private")),
            (FetchError::UrlPolicy(UrlPolicyError::PrivateName), Some("--allow-private")),
            (FetchError::UrlPolicy(UrlPolicyError::Scheme), None),
            (tls(CertificateProblem::UnknownIssuer), Some("--ca-file")),
            (tls(CertificateProblem::UnknownIssuer), Some("SSL_CERT_FILE")),
            (tls(CertificateProblem::Expired), Some("renewed")),
            (tls(CertificateProblem::NotYetValid), Some("clock")),
            (tls(CertificateProblem::WrongName), Some("host name")),
            (tls(CertificateProblem::Other), None),
            (FetchError::network(NetworkFailure::NotTls), Some("port")),
            (FetchError::network(NetworkFailure::Proxy), Some("NO_PROXY")),
            (FetchError::network(NetworkFailure::Resolve), Some("HTTPS_PROXY")),
            (FetchError::network(NetworkFailure::Connect), None),
            (FetchError::Timeout, None),
        ] {
            let earlier = portcullis_discovery::Attempts::default();
            let nested = DiscoveryError::Fetch { url: "https://auth.example.com/".into(), earlier, error };
            let given = advice(&ClientError::Discovery(nested));
            assert_eq!(given.is_some(), helps.is_some(), "{given:?}");
            assert!(given.unwrap_or_default().contains(helps.unwrap_or_default()), "{given:?}");
        }
    }
}
