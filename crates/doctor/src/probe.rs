//! Sends a request, and explains why there is no response.

use portcullis_discovery::{
    CertificateProblem, Fetch, FetchError, FetchRequest, FetchResponse, Lookup, LookupResponse,
    NetworkFailure, UrlPolicyError,
};

use crate::{Finding, RequestSummary, ResponseSummary, Rule, SettingNames, Step};

/// The server can be reached.
pub(crate) const REACHABLE: Rule = Rule {
    id: "connection.reachable",
    source: "RFC 9110 section 7.3",
};
const TLS: Rule = Rule {
    id: "connection.tls",
    source: "RFC 6750 section 5.3",
};
const HTTPS: Rule = Rule {
    id: "connection.https",
    source: "RFC 6749 section 1.6",
};
const PUBLIC: Rule = Rule {
    id: "connection.public_address",
    source: "MCP authorization, security considerations",
};
const BOUNDED: Rule = Rule {
    id: "connection.bounded",
    source: "RFC 9110 section 17",
};

/// Sends the request, and records request and response in the step. Without a response, the step
/// gets the explanation.
pub(crate) async fn send(
    fetch: &dyn Fetch,
    request: FetchRequest,
    step: &mut Step,
    explain: impl FnOnce(&FetchError) -> Finding,
) -> Option<FetchResponse> {
    step.request = Some(RequestSummary::from(&request));
    let response = fetch
        .fetch(request)
        .await
        .map_err(|error| record_failure(step, explain(&error)))
        .ok()?;
    step.response = Some(ResponseSummary::from(&response));
    Some(response)
}

/// Records a request of a search and its response in the step. Without a response, the step gets
/// the explanation.
pub(crate) fn record_lookup<T>(
    lookup: Lookup<T>,
    step: &mut Step,
    explain: impl FnOnce(&FetchError) -> Finding,
) -> Option<LookupResponse<T>> {
    step.request = Some(RequestSummary::get(&lookup.url));
    let found = lookup
        .result
        .map_err(|error| record_failure(step, explain(&error)))
        .ok()?;
    step.response = Some(ResponseSummary::from(&found.response));
    Some(found)
}

fn record_failure(step: &mut Step, finding: Finding) {
    step.failure = Some(finding.text.clone());
    step.findings.push(finding);
}

/// Describes why a request has no response, with the innermost cause. Text of the peer is shortened
/// and escaped.
pub(crate) fn describe_failure(error: &FetchError) -> String {
    match error {
        FetchError::Network(network) => match std::error::Error::source(network) {
            Some(cause) => format!("{network}: {}", innermost(cause)),
            None => network.to_string(),
        },
        other => other.to_string(),
    }
}

/// The finding for a failed request of a client. `is_http`: its URL is plain http.
pub(crate) fn failure(error: &FetchError, is_http: bool, names: &SettingNames) -> Finding {
    let text = describe_failure(error);
    let (rule, fix) = match error {
        FetchError::UrlPolicy(UrlPolicyError::Scheme) => (HTTPS, "use an https URL"),
        FetchError::UrlPolicy(UrlPolicyError::UserInformation) => {
            (HTTPS, "remove the user name and the password from the URL")
        }
        FetchError::UrlPolicy(UrlPolicyError::PrivateName) => {
            let allow = names.allow_private;
            let fix = format!(
                "a proxy is used: publish a public name, or allow private ones here with {allow}"
            );
            return Finding::problem(PUBLIC, text, fix);
        }
        FetchError::UrlPolicy(_) => {
            let fix = format!(
                "clients reject such addresses in metadata: publish public ones, or allow private ones here with {}",
                names.allow_private
            );
            return Finding::problem(PUBLIC, text, fix);
        }
        FetchError::Timeout => (BOUNDED, "let the server answer within seconds"),
        FetchError::TooLarge { .. } => (BOUNDED, "serve a document of a few kilobytes"),
        FetchError::Network(network) => match network.failure() {
            NetworkFailure::Resolve => (
                REACHABLE,
                "correct the host name in the URL or its DNS records, or set HTTPS_PROXY if there is a proxy",
            ),
            NetworkFailure::Proxy => (
                REACHABLE,
                "check HTTPS_PROXY, or list the host in NO_PROXY if it needs no proxy",
            ),
            NetworkFailure::NotTls => (
                TLS,
                "serve https on this port, or correct the port; http is possible for loopback hosts only",
            ),
            NetworkFailure::Interrupted if is_http => (
                REACHABLE,
                "try https, because the server may speak TLS on this port, or find out why it closes the connection",
            ),
            NetworkFailure::Interrupted => (
                REACHABLE,
                "look in the log of the server, or of a proxy, for the reason",
            ),
            NetworkFailure::Tls => {
                let fix = fix_for_certificate(network.certificate_problem(), names);
                return Finding::problem(TLS, text, fix);
            }
            _ => (
                REACHABLE,
                "start the server, or correct the host and port in the URL",
            ),
        },
        _ => (REACHABLE, "correct the network settings of this machine"),
    };
    Finding::problem(rule, text, fix)
}

/// What to change about a rejected certificate.
fn fix_for_certificate(problem: Option<CertificateProblem>, names: &SettingNames) -> String {
    let fix = match problem {
        Some(CertificateProblem::UnknownIssuer) => {
            return format!(
                "serve the whole certificate chain; for a private certificate authority, trust its PEM file: {} for the \
                 host of the URL that is examined, SSL_CERT_FILE for all hosts",
                names.ca_file
            );
        }
        Some(CertificateProblem::Expired) => {
            "renew the certificate, or correct the clock of this machine"
        }
        Some(CertificateProblem::NotYetValid) => {
            "correct the clock of this machine or of the certificate's issuer"
        }
        Some(CertificateProblem::WrongName) => {
            "use a host name for which the certificate is valid, or issue another one"
        }
        Some(CertificateProblem::OfAuthority) => {
            "serve a certificate of a server: this one is of an authority; with `openssl req -x509`, add \
             -addext \"basicConstraints = critical, CA:FALSE\""
        }
        _ => "serve a certificate that is valid for this name, with its whole chain",
    };
    fix.to_owned()
}

/// The last cause of a chain, which is the most specific one; the others repeat it.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    crate::text::quoted(&last.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: plain http to loopback is not said to be accepted from a server that is not on loopback.
    #[test]
    fn a_refused_scheme_names_the_condition() {
        for (error, text, fix) in [
            (
                UrlPolicyError::Scheme,
                "only if the server's own URL has a loopback host",
                "https",
            ),
            (
                UrlPolicyError::UserInformation,
                "user information",
                "password",
            ),
        ] {
            let finding = failure(
                &FetchError::UrlPolicy(error),
                true,
                &SettingNames::default(),
            );
            assert!(finding.text.contains(text), "{finding:?}");
            assert!(finding.fix.as_deref().unwrap().contains(fix), "{finding:?}");
        }
    }
}
