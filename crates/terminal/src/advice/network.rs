//! [`network_advice`]: what a user can do about a failed request.

use std::error::Error;

use portcullis_discovery::{
    CertificateProblem, FetchError, NetworkError, NetworkFailure, UrlPolicyError,
};

/// Returns what a user can do about a failed request, as one clause. It names the option, the
/// environment variable, or what to change at the server or on this machine.
///
/// The first [`FetchError`] among the error and its sources decides. Returns `None` if there is
/// none, or if its message already says everything, such as that of a timeout.
///
/// ```
/// use portcullis_discovery::{FetchError, NetworkFailure};
/// use portcullis_terminal::network_advice;
///
/// let error = FetchError::network(NetworkFailure::Resolve);
/// assert_eq!(network_advice(&error), Some("if this network needs an egress proxy, set HTTPS_PROXY"));
/// assert_eq!(network_advice(&FetchError::Timeout), None);
/// ```
pub fn network_advice(error: &(dyn Error + 'static)) -> Option<&'static str> {
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
        FetchError::Network(network) => advice_for_network(network),
        _ => None,
    }
}

fn advice_for_network(error: &NetworkError) -> Option<&'static str> {
    if let Some(problem) = error.certificate_problem() {
        return advice_for_certificate(problem);
    }
    match error.failure() {
        NetworkFailure::Proxy => {
            Some("check HTTPS_PROXY, or list the host in NO_PROXY if it can be reached directly")
        }
        NetworkFailure::Resolve => Some("if this network needs an egress proxy, set HTTPS_PROXY"),
        NetworkFailure::NotTls => Some("correct the port, or let the server use https"),
        _ => None,
    }
}

fn advice_for_certificate(problem: CertificateProblem) -> Option<&'static str> {
    match problem {
        CertificateProblem::UnknownIssuer => Some(
            "to trust its certificate authority, name a PEM file: --ca-file for the host of the URL that you gave, \
             SSL_CERT_FILE for all hosts",
        ),
        CertificateProblem::Expired => {
            Some("the server's certificate must be renewed, if this machine's clock is right")
        }
        CertificateProblem::NotYetValid => Some("check this machine's clock"),
        CertificateProblem::WrongName => Some("use a host name for which the certificate is valid"),
        CertificateProblem::OfAuthority => Some(
            "the server's certificate is one of an authority; it must be one of a server, with CA:FALSE",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use portcullis_client::ClientError;
    use portcullis_discovery::DiscoveryError;

    use super::*;

    /// G6: the advice names the option or variable that resolves the error, also if another error
    /// wraps it.
    #[test]
    fn advice_names_what_resolves_the_error() {
        let tls = |problem| FetchError::Network(NetworkError::tls(problem, std::fmt::Error));
        for (error, expected) in [
            (
                FetchError::UrlPolicy(UrlPolicyError::Address),
                Some("--allow-private"),
            ),
            (
                FetchError::UrlPolicy(UrlPolicyError::PrivateName),
                Some("--allow-private"),
            ),
            (FetchError::UrlPolicy(UrlPolicyError::Scheme), None),
            (tls(CertificateProblem::UnknownIssuer), Some("--ca-file")),
            (
                tls(CertificateProblem::UnknownIssuer),
                Some("SSL_CERT_FILE"),
            ),
            (tls(CertificateProblem::Expired), Some("renewed")),
            (tls(CertificateProblem::NotYetValid), Some("clock")),
            (tls(CertificateProblem::WrongName), Some("host name")),
            (tls(CertificateProblem::OfAuthority), Some("CA:FALSE")),
            (tls(CertificateProblem::Other), None),
            (FetchError::network(NetworkFailure::NotTls), Some("port")),
            (FetchError::network(NetworkFailure::Proxy), Some("NO_PROXY")),
            (
                FetchError::network(NetworkFailure::Resolve),
                Some("HTTPS_PROXY"),
            ),
            (FetchError::network(NetworkFailure::Connect), None),
            (FetchError::Timeout, None),
        ] {
            let earlier = portcullis_discovery::Attempts::default();
            let nested = DiscoveryError::Fetch {
                url: "https://auth.example.com/".into(),
                earlier,
                error,
            };
            let given = network_advice(&ClientError::Discovery(nested));
            assert_eq!(given.is_some(), expected.is_some(), "{given:?}");
            assert!(
                given
                    .unwrap_or_default()
                    .contains(expected.unwrap_or_default()),
                "{given:?}"
            );
        }
    }
}
