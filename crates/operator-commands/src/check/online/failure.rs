//! Requests to services, and what to change if there is no response.

use portcullis_discovery::{
    CertificateProblem, Fetch as _, FetchError, FetchRequest, FetchResponse, HttpFetch, NetworkFailure,
};
use portcullis_doctor::{Finding, Rule, Step, describe_failure};

use super::REQUEST_TIMEOUT;

const REACHABLE: Rule = Rule::new("connection.reachable", "RFC 9110 section 7.3");
const TLS: Rule = Rule::new("connection.tls", "RFC 9110 section 4.3.4");

/// Sends a request. Without a response, the step has a problem. `key` is the table whose settings apply.
pub(super) async fn send(
    fetch: &HttpFetch,
    mut request: FetchRequest,
    key: &str,
    step: &mut Step,
) -> Option<FetchResponse> {
    request.timeout = REQUEST_TIMEOUT;
    step.request = Some((&request).into());
    let host = request.url.host_str().unwrap_or_default().to_owned();
    match fetch.fetch(request).await {
        Ok(response) => {
            step.response = Some((&response).into());
            Some(response)
        }
        Err(error) => {
            let (text, (rule, fix)) = (describe_failure(&error), fix(&error, key, &host));
            step.failure = Some(text.clone());
            step.findings.push(Finding::problem(rule, text, fix));
            None
        }
    }
}

fn fix(error: &FetchError, key: &str, host: &str) -> (Rule, String) {
    let network = match error {
        FetchError::Network(network) => network,
        FetchError::Timeout => {
            return (REACHABLE, format!("see why {host} does not answer from this machine, such as a firewall"));
        }
        FetchError::TooLarge { .. } => return (REACHABLE, "correct the URL: the document is far too long".to_owned()),
        _ => return (REACHABLE, format!("correct the URL, or ca_file and proxy of {key}")),
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
            format!("correct proxy of {key} or HTTPS_PROXY, or list {host} in NO_PROXY if it needs no proxy"),
        ),
        NetworkFailure::NotTls => (TLS, format!("serve https at {host}, or correct the port")),
        NetworkFailure::Interrupted => (
            REACHABLE,
            format!("see in the log of {host} why the connection was closed; the port may speak TLS, or not HTTP"),
        ),
        NetworkFailure::Tls => (TLS, certificate_fix(network.certificate_problem(), key, host)),
        _ => (REACHABLE, format!("see why {host} cannot be reached from this machine")),
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
        Some(CertificateProblem::WrongName) => format!("use a host name of the certificate, or issue one for {host}"),
        _ => format!("let {host} send a certificate that is valid for this name, with its whole chain"),
    }
}
