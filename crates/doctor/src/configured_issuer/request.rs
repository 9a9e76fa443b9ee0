//! Requests to services, and what to change if there is no response.

use portcullis_discovery::{
    CertificateProblem, Fetch, FetchError, FetchRequest, FetchResponse, Lookup, LookupResponse,
    NetworkFailure,
};

use super::TIMEOUT;
use crate::{
    Finding, Rule, Step,
    probe::{self, REACHABLE, describe_failure},
};

const TLS: Rule = Rule {
    id: "connection.tls",
    source: "RFC 9110 section 4.3.4",
};

/// Sends a request. Without a response, the step has a problem. `key` is the table whose settings
/// apply.
pub(super) async fn send(
    fetch: &dyn Fetch,
    mut request: FetchRequest,
    key: &str,
    step: &mut Step,
) -> Option<FetchResponse> {
    request.timeout = TIMEOUT;
    let host = request.url.host_str().unwrap_or_default().to_owned();
    probe::send(fetch, request, step, |error| explain(error, key, &host)).await
}

/// Records a request of a search, as [`send`] does.
pub(super) fn record_lookup<T>(
    lookup: Lookup<T>,
    key: &str,
    step: &mut Step,
) -> Option<LookupResponse<T>> {
    let host = lookup.url.host_str().unwrap_or_default().to_owned();
    probe::record_lookup(lookup, step, |error| explain(error, key, &host))
}

fn explain(error: &FetchError, key: &str, host: &str) -> Finding {
    let (rule, fix) = fix(error, key, host);
    Finding::problem(rule, describe_failure(error), fix)
}

fn fix(error: &FetchError, key: &str, host: &str) -> (Rule, String) {
    let network = match error {
        FetchError::Network(network) => network,
        FetchError::Timeout => {
            return (
                REACHABLE,
                format!("see why {host} does not answer from this machine, such as a firewall"),
            );
        }
        FetchError::TooLarge { .. } => {
            return (
                REACHABLE,
                "correct the URL: the document is far too long".to_owned(),
            );
        }
        _ => {
            return (
                REACHABLE,
                format!("correct the URL, or ca_file and proxy of {key}"),
            );
        }
    };
    match network.failure() {
        NetworkFailure::Resolve => (
            REACHABLE,
            format!(
                "correct the host name {host} or its DNS records; in a container, use a name that is known there too"
            ),
        ),
        NetworkFailure::Connect => (
            REACHABLE,
            format!(
                "start the server at {host}, or correct host and port; in a container, localhost is the container itself"
            ),
        ),
        NetworkFailure::Proxy => (
            REACHABLE,
            format!(
                "correct proxy of {key} or HTTPS_PROXY, or list {host} in NO_PROXY if it needs no proxy"
            ),
        ),
        NetworkFailure::NotTls => (TLS, format!("serve https at {host}, or correct the port")),
        NetworkFailure::Interrupted => (
            REACHABLE,
            format!(
                "see in the log of {host} why the connection was closed; the port may speak TLS, or not HTTP"
            ),
        ),
        NetworkFailure::Tls => (
            TLS,
            certificate_fix(network.certificate_problem(), key, host),
        ),
        _ => (
            REACHABLE,
            format!("see why {host} cannot be reached from this machine"),
        ),
    }
}

fn certificate_fix(problem: Option<CertificateProblem>, key: &str, host: &str) -> String {
    match problem {
        Some(CertificateProblem::UnknownIssuer) => format!(
            "set ca_file of {key} to the PEM file of the private certificate authority, or let {host} send its whole chain"
        ),
        Some(CertificateProblem::Expired) => {
            format!("renew the certificate of {host}, or correct the clock of this machine")
        }
        Some(CertificateProblem::NotYetValid) => "correct the clock of this machine".to_owned(),
        Some(CertificateProblem::WrongName) => {
            format!("use a host name of the certificate, or issue one for {host}")
        }
        Some(CertificateProblem::OfAuthority) => {
            format!(
                "let {host} send a certificate of a server, with CA:FALSE: this one is of an authority"
            )
        }
        _ => format!(
            "let {host} send a certificate that is valid for this name, with its whole chain"
        ),
    }
}
