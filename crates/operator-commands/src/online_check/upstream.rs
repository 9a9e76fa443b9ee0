//! The MCP server behind a resource: whether it can be reached, speaks MCP, and how it uses
//! sessions.

mod first_response;
mod rules;
mod session_use;
mod unreachable;
mod urls;

use std::time::{Duration, Instant};

use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use portcullis_doctor::{Finding, Report, Step, Verdict};
use portcullis_gateway::HttpUpstreamSettings;
use portcullis_metadata::EscapedText;
use url::{Position, Url};

use super::{Steps, mcp, upstream_connection::Upstream};
use portcullis_config::plan::{ResourcePlan, is_public_address};
use rules::{ADDRESS, SESSIONS, TIME};

/// The time for the first response from which there is a warning.
const SLOW: Duration = Duration::from_secs(4);
/// The most characters of a peer's text that are shown.
const MAX_SHOWN: usize = 200;

/// Opens a session as a client would, and ends it.
pub(super) async fn examine(
    key: &str,
    resource: &ResourcePlan,
    settings: &HttpUpstreamSettings,
    version: &str,
    steps: &mut Steps<'_>,
) {
    let Some(upstream) = Upstream::new(settings) else {
        return;
    };
    let check = UpstreamCheck {
        key,
        resource,
        upstream,
        version,
    };
    let mut step = Step::new(format!("the upstream of {key}"));
    check.addresses(&mut step).await;
    let opened = check.open(&mut step).await;
    steps.add(step);
    if let Some(opened) = opened {
        let mut step = Step::new(format!("the sessions of the upstream of {key}"));
        step.findings.push(check.session_use(&opened).await);
        steps.add(step);
    }
}

/// Returns whether a report says that the upstream has no sessions, so that this server needs none
/// either.
pub(crate) fn suggests_sessions_off(report: &Report) -> bool {
    report
        .findings()
        .any(|finding| finding.rule == SESSIONS && finding.verdict == Verdict::Note)
}

struct UpstreamCheck<'a> {
    /// The key of its resource, such as `resource[0]`.
    key: &'a str,
    resource: &'a ResourcePlan,
    upstream: Upstream<'a>,
    /// The version of this program.
    version: &'a str,
}

impl UpstreamCheck<'_> {
    /// Warns of a host name with public addresses. Literal ones have a warning of the
    /// configuration.
    async fn addresses(&self, step: &mut Step) {
        let addresses = self.upstream.addresses().await;
        let is_name = matches!(self.upstream.url().host(), Some(url::Host::Domain(_)));
        if let Some(public) = addresses
            .iter()
            .find(|address| is_name && is_public_address(address.ip()))
        {
            step.findings.push(Finding::warning(
                ADDRESS,
                format!(
                    "the host has the public address {}: clients can reach the MCP server without a token",
                    public.ip()
                ),
                "let it listen in a private network, or admit only this server there",
            ));
        }
    }

    /// Sends the first message. Returns the response if the server speaks MCP.
    async fn open(&self, step: &mut Step) -> Option<FetchResponse> {
        let url = self.upstream.url();
        let request = mcp::first_message(url.clone(), self.resource.revisions, self.version);
        step.request = Some(
            (&FetchRequest::new(request.method.clone(), url.clone(), UrlPolicy::Operator)).into(),
        );
        let started = Instant::now();
        let response = match self.upstream.send(request).await {
            Ok(response) => response,
            Err(failure) => {
                let finding = self.failure(&failure);
                step.failure = Some(finding.text.clone());
                step.findings.push(finding);
                return None;
            }
        };
        step.response = Some((&response).into());
        let elapsed = started.elapsed();
        if elapsed > SLOW {
            step.findings.push(Finding::warning(
                TIME,
                format!("the first response took {} s", elapsed.as_secs()),
                "see why the server starts slowly; upstream_head_timeout limits every response",
            ));
        }
        let finding = self.first_response(&response).await;
        let is_mcp = finding.fix.is_none();
        step.findings.push(finding);
        is_mcp.then_some(response)
    }

    /// Returns the fix that writes another address. Of a Unix socket, the path can differ.
    fn write(&self, url: &Url) -> String {
        let setting = match self.upstream.socket() {
            Some(socket) => format!(
                "unix = \"{}:{}\"",
                socket.display(),
                EscapedText::first(url.path(), MAX_SHOWN)
            ),
            None => format!("http = \"{}\"", EscapedText::first(url.as_str(), MAX_SHOWN)),
        };
        format!("write upstream = {{ {setting} }} in {}", self.key)
    }

    /// Returns the fix that writes another path.
    fn write_path(&self) -> String {
        let url = self.upstream.url();
        match self.upstream.socket() {
            Some(socket) => format!(
                "write upstream = {{ unix = \"{}:/PATH\" }} in {}",
                socket.display(),
                self.key
            ),
            None => {
                let origin =
                    EscapedText::first(&url[..Position::BeforePath], MAX_SHOWN).to_string();
                format!(
                    "write upstream = {{ http = \"{origin}/PATH\" }} in {}",
                    self.key
                )
            }
        }
    }
}
