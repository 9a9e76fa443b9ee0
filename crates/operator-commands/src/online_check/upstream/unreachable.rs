//! What to change if an upstream sends no response.

use portcullis_doctor::Finding;
use rustls::CertificateError;

use super::{
    UpstreamCheck,
    rules::{REACHABLE, TLS},
    urls::with_scheme,
};
use crate::online_check::upstream_connection::NoResponse;

impl UpstreamCheck<'_> {
    /// Returns the problem of an upstream that sends no response.
    pub(super) fn failure(&self, failure: &NoResponse) -> Finding {
        let url = self.upstream.url();
        let host = url.host_str().unwrap_or_default();
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        match failure {
            NoResponse::Resolve => Finding::problem(
                REACHABLE,
                format!("the host name {host} cannot be resolved"),
                "correct the host name in upstream; in a container, use a name that is known there too",
            ),
            NoResponse::Connect(error) => match self.upstream.socket() {
                Some(socket) => Finding::problem(
                    REACHABLE,
                    format!("cannot connect to the socket {}: {error}", socket.display()),
                    "start the MCP server, correct the path in upstream, or let this user write to the socket",
                ),
                None => Finding::problem(
                    REACHABLE,
                    format!("cannot connect to {authority}: {error}"),
                    "start the MCP server, or correct host and port in upstream; in a container, localhost is the container itself",
                ),
            },
            NoResponse::Timeout => Finding::problem(
                REACHABLE,
                format!("{authority} does not answer in time"),
                "see in the log of the MCP server, or of a firewall, why it does not answer",
            ),
            NoResponse::NotTls => Finding::problem(
                TLS,
                "the upstream does not speak TLS on this port",
                self.write(&with_scheme(url, "http")),
            ),
            NoResponse::Certificate(problem) => Finding::problem(
                TLS,
                format!("the certificate of the upstream is rejected: {problem}"),
                self.certificate(problem),
            ),
            NoResponse::Tls(error) => Finding::problem(
                TLS,
                format!("the TLS handshake failed: {error}"),
                "let the upstream support TLS 1.2 or 1.3 without a client certificate, or use http on a private network",
            ),
            NoResponse::Http(error) => {
                let fix = if url.scheme() == "http" && !self.upstream.is_socket() {
                    format!(
                        "the port may speak TLS: {}; or see the log of the MCP server",
                        self.write(&with_scheme(url, "https"))
                    )
                } else {
                    "see in the log of the MCP server why it closes the connection".to_owned()
                };
                Finding::problem(
                    REACHABLE,
                    format!("{authority} sends no HTTP response: {error}"),
                    fix,
                )
            }
        }
    }

    /// Returns the fix for a certificate that is not accepted.
    fn certificate(&self, problem: &CertificateError) -> String {
        match problem {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "renew the certificate of the upstream, or correct the clock of this machine"
                    .to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "write a host name of the certificate in upstream".to_owned()
            }
            _ => format!(
                "set upstream_ca_file of {} to the PEM file of its certificate authority",
                self.key
            ),
        }
    }
}
