//! How an upstream uses session identifiers.

use http::{HeaderName, HeaderValue, StatusCode};
use portcullis_discovery::FetchResponse;
use portcullis_doctor::{Finding, describe_response};
use portcullis_endpoint::SessionMode;
use portcullis_mcp::header as mcp_header;
use serde_json::Value;

use super::{UpstreamCheck, rules::SESSIONS};
use crate::online_check::mcp::{self, Answer};

type Header = (HeaderName, HeaderValue);

impl UpstreamCheck<'_> {
    /// Continues the session that `opened` has opened, and ends it. Returns whether the upstream's
    /// use of sessions fits the configuration.
    pub(super) async fn session_use(&self, opened: &FetchResponse) -> Finding {
        if !self.resource.revisions.has_legacy() {
            return Finding::met(SESSIONS, "the served revisions have no sessions");
        }
        let url = self.upstream.url();
        let identifier = opened.headers.get(&self.resource.session_header).cloned();
        let identifier =
            identifier.map(|identifier| (self.resource.session_header.clone(), identifier));
        let version = negotiated_version(opened);
        let headers: Vec<Header> = version
            .clone()
            .into_iter()
            .chain(identifier.clone())
            .collect();
        // The response to a notification is not evaluated.
        let _ = self
            .upstream
            .send(mcp::initialized(url.clone(), headers.clone()))
            .await;
        let finding = match (&identifier, self.resource.session_mode) {
            (Some(_), SessionMode::Off) => self.without_identifier(version).await,
            (Some(_), _) => Finding::met(SESSIONS, "the upstream assigns session identifiers"),
            (None, SessionMode::Off) => Finding::met(
                SESSIONS,
                "the upstream has no sessions, and sessions = \"off\"",
            ),
            (None, _) => Finding::note(
                SESSIONS,
                format!(
                    "the upstream assigns no session identifiers; sessions = \"off\" in {} spares clients theirs",
                    self.key
                ),
            ),
        };
        if identifier.is_some() {
            // The session is not needed any more, even if the server cannot end it.
            let _ = self.upstream.send(mcp::delete(url.clone(), headers)).await;
        }
        finding
    }

    /// Tests whether the upstream serves requests without the identifier that it has assigned.
    async fn without_identifier(&self, version: Option<Header>) -> Finding {
        let request = mcp::ping(self.upstream.url().clone(), version.into_iter().collect());
        let response = match self.upstream.send(request).await {
            Ok(response) => response,
            Err(failure) => return self.failure(&failure),
        };
        let described = describe_response(&response);
        match (response.status, mcp::answer(&response)) {
            (status, Answer::Result(_)) if status.is_success() => Finding::note(
                SESSIONS,
                "the upstream assigns session identifiers, and serves requests without one",
            ),
            (StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND, _) => {
                self.identifier_required(&described)
            }
            (status, Answer::Error { code, message }) if status.is_success() => {
                self.identifier_required(&format!("{described} with the error {code}: {message}"))
            }
            _ => Finding::warning(
                SESSIONS,
                format!("a request without the upstream's session identifier gets {described}"),
                format!(
                    "see the log of the MCP server; if it keeps sessions, remove sessions = \"off\" from {}",
                    self.key
                ),
            ),
        }
    }

    fn identifier_required(&self, described: &str) -> Finding {
        Finding::problem(
            SESSIONS,
            format!(
                "the upstream rejects requests without its session identifier, which sessions = \"off\" removes: {described}"
            ),
            format!(
                "remove sessions = \"off\" from {}, or make the MCP server stateless",
                self.key
            ),
        )
    }
}

/// Returns the header with the revision that the upstream has chosen.
fn negotiated_version(opened: &FetchResponse) -> Option<Header> {
    let Answer::Result(result) = mcp::answer(opened) else {
        return None;
    };
    let version = result.get("protocolVersion").and_then(Value::as_str)?;
    Some((
        mcp_header::PROTOCOL_VERSION,
        HeaderValue::try_from(version).ok()?,
    ))
}
