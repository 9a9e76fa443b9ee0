//! What the response of an upstream to the first message means.

use http::{StatusCode, header::LOCATION};
use portcullis_discovery::FetchResponse;
use portcullis_doctor::{Finding, asks_for_tls, describe_response};
use portcullis_mcp::Revision;
use portcullis_metadata::EscapedText;
use serde_json::Value;

use super::{
    MAX_SHOWN, UpstreamCheck,
    rules::{AUTHORIZATION, HOST, MCP, REDIRECT, REVISION, TLS},
    urls::{similar_urls, with_path, with_scheme},
};
use crate::online_check::mcp::{self, Answer};

/// What servers write if they do not serve the host of a request.
const HOST_REJECTIONS: [&str; 5] = [
    "invalid host",
    "host header",
    "http_host",
    "host is not allowed",
    "host not allowed",
];

impl UpstreamCheck<'_> {
    /// Returns what the response to the first message means. A finding without a fix means that the
    /// server speaks MCP.
    pub(super) async fn first_response(&self, response: &FetchResponse) -> Finding {
        let status = response.status;
        let described = describe_response(response);
        if asks_for_tls(response) {
            let fix = self.write(&with_scheme(self.upstream.url(), "https"));
            return Finding::problem(TLS, "the upstream speaks TLS on this port", fix);
        }
        if status.is_redirection() {
            return self.redirect(response, described);
        }
        if matches!(
            status,
            StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED
        ) {
            return Finding::problem(
                AUTHORIZATION,
                format!("the upstream requires authorization of its own: {described}"),
                "switch off the authorization of the MCP server: this server checks the tokens, and does not forward them",
            );
        }
        if rejects_host(response) {
            let host = &self.upstream.url()[url::Position::BeforeHost..url::Position::AfterPort];
            return Finding::problem(
                HOST,
                format!("the upstream rejects the host {host:?}: {described}"),
                format!(
                    "add {host:?} to the allowed hosts of the MCP server, such as allowed_hosts of its SDK"
                ),
            );
        }
        if status == StatusCode::FORBIDDEN {
            let fix =
                "let the MCP server, or the proxy or firewall in front of it, admit this machine";
            return Finding::problem(
                AUTHORIZATION,
                format!("the upstream forbids the request: {described}"),
                fix,
            );
        }
        if status.is_server_error() {
            return Finding::problem(
                MCP,
                format!("the upstream answers {described}"),
                "see the log of the MCP server",
            );
        }
        match mcp::answer(response) {
            Answer::Result(result) => self.revision(&result),
            Answer::Error { code, message } => self.error(code, &message, &described),
            Answer::Other => self.not_mcp(status, &described).await,
        }
    }

    /// A redirect is not followed, because the target could be anywhere.
    fn redirect(&self, response: &FetchResponse, described: String) -> Finding {
        let location = response
            .headers
            .get(LOCATION)
            .and_then(|location| location.to_str().ok());
        let target = location.and_then(|location| self.upstream.url().join(location).ok());
        let fix = match target {
            Some(target) => self.write(&target),
            None => "write the final address in upstream".to_owned(),
        };
        Finding::problem(
            REDIRECT,
            format!("the upstream redirects, which is not followed: {described}"),
            fix,
        )
    }

    /// Compares the negotiated revision with the served ones.
    fn revision(&self, result: &Value) -> Finding {
        let served = self.resource.revisions;
        let name = result.pointer("/serverInfo/name").and_then(Value::as_str);
        let name = name
            .map(|name| format!(" ({})", EscapedText::first(name, MAX_SHOWN)))
            .unwrap_or_default();
        let Some(negotiated) = result.get("protocolVersion").and_then(Value::as_str) else {
            if !served.has_legacy() {
                return Finding::met(MCP, format!("the upstream speaks MCP{name}"));
            }
            let fix = "write the address of an MCP server in upstream";
            return Finding::problem(MCP, "the result of initialize has no protocolVersion", fix);
        };
        let shown = EscapedText::first(negotiated, MAX_SHOWN);
        match Revision::parse(negotiated) {
            Some(revision) if served.contains(revision) => Finding::met(
                REVISION,
                format!("the upstream speaks MCP {revision}{name}"),
            ),
            Some(revision) => Finding::problem(
                REVISION,
                format!(
                    "the upstream speaks MCP {revision}, which {} does not serve",
                    self.key
                ),
                format!("add \"{revision}\" to revisions of {}", self.key),
            ),
            None => Finding::problem(
                REVISION,
                format!("the upstream speaks MCP {shown}, which this server does not support"),
                "update the SDK of the MCP server to a revision from 2025-03-26 on",
            ),
        }
    }

    /// Returns the finding for a JSON-RPC error.
    fn error(&self, code: i64, message: &str, described: &str) -> Finding {
        let text = format!("the upstream answers {described} with the error {code}: {message}");
        let fix = match code {
            -32022 => format!(
                "update the MCP server, or set revisions of {} to those that it supports",
                self.key
            ),
            -32601 if !self.resource.revisions.has_legacy() => {
                format!(
                    "add the revisions with sessions, such as \"2025-11-25\", to revisions of {}",
                    self.key
                )
            }
            _ => "see the log of the MCP server".to_owned(),
        };
        Finding::problem(MCP, text, fix)
    }

    /// The address is not that of an MCP endpoint. Looks for one nearby.
    async fn not_mcp(&self, status: StatusCode, described: &str) -> Finding {
        let url = self.upstream.url();
        let path = EscapedText::first(url.path(), MAX_SHOWN);
        let text = match status {
            StatusCode::NOT_FOUND => {
                format!("the upstream has nothing at the path {path}: {described}")
            }
            _ => format!(
                "the upstream does not answer as an MCP server at the path {path}: {described}"
            ),
        };
        for other in similar_urls(url) {
            let request = mcp::first_message(other.clone(), self.resource.revisions, self.version);
            if let Ok(response) = self.upstream.send(request).await
                && matches!(mcp::answer(&response), Answer::Result(_))
            {
                return Finding::problem(MCP, text, self.write(&other));
            }
        }
        for other in [url.clone(), with_path(url, "/sse")] {
            let response = self.upstream.send(mcp::event_stream(other)).await;
            if response.is_ok_and(|response| mcp::is_former_transport(&response)) {
                let text = "the upstream speaks only the HTTP+SSE transport of 2024-11-05";
                let fix = "let the MCP server use the Streamable HTTP transport, such as transport=\"http\" of its SDK";
                return Finding::problem(MCP, text, fix);
            }
        }
        Finding::problem(
            MCP,
            text,
            format!(
                "find the whole URL of the MCP endpoint, with its path such as /mcp, and {}",
                self.write_path()
            ),
        )
    }
}

/// Returns whether the server does not serve the host of the request.
fn rejects_host(response: &FetchResponse) -> bool {
    let body = String::from_utf8_lossy(&response.body).to_ascii_lowercase();
    let is_rejection = HOST_REJECTIONS.iter().any(|text| body.contains(text));
    response.status == StatusCode::MISDIRECTED_REQUEST
        || (response.status.is_client_error() && is_rejection)
}
