//! The MCP server behind a resource: whether it can be reached, speaks MCP, and how it uses sessions.

mod unreachable;

use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue, StatusCode, header::LOCATION};
use portcullis_discovery::{FetchRequest, FetchResponse, UrlPolicy};
use portcullis_doctor::{Finding, Report, Rule, Step, Verdict, asks_for_tls, describe_response};
use portcullis_endpoint::SessionMode;
use portcullis_gateway::HttpUpstreamSettings;
use portcullis_mcp::{Revision, header as mcp_header};
use portcullis_metadata::EscapedText;
use serde_json::Value;
use url::Url;

use super::{
    Steps,
    mcp::{self, Answer},
    upstream_connection::Upstream,
};
use crate::plan::{ResourcePlan, is_public_address};

const REACHABLE: Rule = Rule::new("upstream.reachable", "RFC 9110 section 7.3");
const TLS: Rule = Rule::new("upstream.tls", "RFC 9110 section 4.3.4");
const ADDRESS: Rule = Rule::new("upstream.address", "docs/use/configuration.md");
const REDIRECT: Rule = Rule::new("upstream.redirect", "RFC 9110 section 15.4");
const AUTHORIZATION: Rule = Rule::new("upstream.authorization", "docs/use/configuration.md");
const HOST: Rule = Rule::new("upstream.host", "RFC 9110 section 7.2");
const MCP: Rule = Rule::new("upstream.mcp", "MCP Streamable HTTP transport");
const REVISION: Rule = Rule::new("upstream.revision", "MCP lifecycle");
const SESSIONS: Rule = Rule::new("upstream.sessions", "MCP session management");
const TIME: Rule = Rule::new("upstream.time", "docs/use/configuration.md");

/// The time for the first response from which there is a warning.
const SLOW: Duration = Duration::from_secs(4);
/// The most characters of a peer's text that are shown.
const MAX_SHOWN: usize = 200;

/// Opens a session as a client would, and ends it.
pub(super) async fn examine(
    key: &str,
    resource: &ResourcePlan,
    settings: &HttpUpstreamSettings,
    steps: &mut Steps<'_>,
) {
    let Some(upstream) = Upstream::new(settings) else { return };
    let check = UpstreamCheck { key, resource, upstream };
    let mut step = Step::new(format!("the upstream of {key}"));
    check.addresses(&mut step).await;
    let opened = check.open(&mut step).await;
    steps.add(step);
    if let Some(opened) = opened {
        let mut step = Step::new(format!("the sessions of the upstream of {key}"));
        check.sessions(&opened, &mut step).await;
        steps.add(step);
    }
}

/// Whether the upstream has no sessions, so that this server needs none either.
pub(in crate::command) fn suggests_sessions_off(report: &Report) -> bool {
    report.findings().any(|finding| finding.rule == SESSIONS && finding.verdict == Verdict::Note)
}

struct UpstreamCheck<'a> {
    key: &'a str,
    resource: &'a ResourcePlan,
    upstream: Upstream<'a>,
}

impl UpstreamCheck<'_> {
    /// Warns of a host name with public addresses. Literal ones have a warning of the configuration.
    async fn addresses(&self, step: &mut Step) {
        let addresses = self.upstream.addresses().await;
        let is_name = matches!(self.upstream.url().host(), Some(url::Host::Domain(_)));
        if let Some(public) = addresses.iter().find(|address| is_name && is_public_address(address.ip())) {
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
        let request = mcp::first_message(url.clone(), self.resource.revisions);
        step.request = Some((&FetchRequest::new(request.method.clone(), url.clone(), UrlPolicy::Operator)).into());
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

    async fn first_response(&self, response: &FetchResponse) -> Finding {
        let status = response.status;
        let described = describe_response(response);
        let body = String::from_utf8_lossy(&response.body).to_ascii_lowercase();
        if asks_for_tls(response) {
            let fix = self.write(&with_scheme(self.upstream.url(), "https"));
            return Finding::problem(TLS, "the upstream speaks TLS on this port", fix);
        }
        if status.is_redirection() {
            return self.redirect(response, described);
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED) {
            return Finding::problem(
                AUTHORIZATION,
                format!("the upstream requires authorization of its own: {described}"),
                "switch off the authorization of the MCP server: this server checks the tokens, and does not forward them",
            );
        }
        let names_host = ["invalid host", "host header", "http_host", "host is not allowed", "host not allowed"];
        let rejects_host = status.is_client_error() && names_host.iter().any(|text| body.contains(text));
        if status == StatusCode::MISDIRECTED_REQUEST || rejects_host {
            let host = &self.upstream.url()[url::Position::BeforeHost..url::Position::AfterPort];
            return Finding::problem(
                HOST,
                format!("the upstream rejects the host {host:?}: {described}"),
                format!("add {host:?} to the allowed hosts of the MCP server, such as allowed_hosts of its SDK"),
            );
        }
        if status == StatusCode::FORBIDDEN {
            let fix = "let the MCP server, or the proxy or firewall in front of it, admit this machine";
            return Finding::problem(AUTHORIZATION, format!("the upstream forbids the request: {described}"), fix);
        }
        if status.is_server_error() {
            return Finding::problem(MCP, format!("the upstream answers {described}"), "see the log of the MCP server");
        }
        match mcp::answer(response) {
            Answer::Result(result) => self.revision(&result),
            Answer::Error { code, message } => self.error(code, &message, &described),
            Answer::Other => self.not_mcp(&described).await,
        }
    }

    fn redirect(&self, response: &FetchResponse, described: String) -> Finding {
        let location = response.headers.get(LOCATION).and_then(|location| location.to_str().ok());
        let target = location.and_then(|location| self.upstream.url().join(location).ok());
        let fix = match target {
            Some(target) => self.write(&target),
            None => "write the final address in upstream".to_owned(),
        };
        Finding::problem(REDIRECT, format!("the upstream redirects, which is not followed: {described}"), fix)
    }

    fn revision(&self, result: &Value) -> Finding {
        let served = self.resource.revisions;
        let name = result.pointer("/serverInfo/name").and_then(Value::as_str);
        let name = name.map(|name| format!(" ({})", EscapedText::first(name, MAX_SHOWN))).unwrap_or_default();
        let Some(negotiated) = result.get("protocolVersion").and_then(Value::as_str) else {
            if !served.has_legacy() {
                return Finding::met(MCP, format!("the upstream speaks MCP{name}"));
            }
            let fix = "write the address of an MCP server in upstream";
            return Finding::problem(MCP, "the result of initialize has no protocolVersion", fix);
        };
        let shown = EscapedText::first(negotiated, MAX_SHOWN);
        match Revision::parse(negotiated) {
            Some(revision) if served.contains(revision) => {
                Finding::met(REVISION, format!("the upstream speaks MCP {revision}{name}"))
            }
            Some(revision) => Finding::problem(
                REVISION,
                format!("the upstream speaks MCP {revision}, which {} does not serve", self.key),
                format!("add \"{revision}\" to revisions of {}", self.key),
            ),
            None => Finding::problem(
                REVISION,
                format!("the upstream speaks MCP {shown}, which this server does not support"),
                "update the SDK of the MCP server to a revision from 2025-03-26 on",
            ),
        }
    }

    fn error(&self, code: i64, message: &str, described: &str) -> Finding {
        let text = format!("the upstream answers {described} with the error {code}: {message}");
        let fix = match code {
            -32022 => format!("update the MCP server, or set revisions of {} to those that it supports", self.key),
            -32601 if !self.resource.revisions.has_legacy() => {
                format!("add the revisions with sessions, such as \"2025-11-25\", to revisions of {}", self.key)
            }
            _ => "see the log of the MCP server".to_owned(),
        };
        Finding::problem(MCP, text, fix)
    }

    /// The address is not that of an MCP endpoint. Looks for one nearby.
    async fn not_mcp(&self, described: &str) -> Finding {
        let text = format!("the upstream does not answer as an MCP server: {described}");
        let url = self.upstream.url();
        for other in similar_urls(url) {
            let request = mcp::first_message(other.clone(), self.resource.revisions);
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
        Finding::problem(MCP, text, "write the whole URL of the MCP endpoint in upstream, with its path, such as /mcp")
    }

    /// How the upstream uses session identifiers.
    async fn sessions(&self, opened: &FetchResponse, step: &mut Step) {
        if !self.resource.revisions.has_legacy() {
            step.findings.push(Finding::met(SESSIONS, "the served revisions have no sessions"));
            return;
        }
        let url = self.upstream.url();
        let identifier = opened.headers.get(&self.resource.session_header).cloned();
        let version = match mcp::answer(opened) {
            Answer::Result(result) => result.get("protocolVersion").and_then(Value::as_str).map(str::to_owned),
            _ => None,
        };
        let version = version.and_then(|version| HeaderValue::try_from(version).ok());
        let version = version.map(|version| (mcp_header::PROTOCOL_VERSION, version));
        let of_session = identifier.clone().map(|identifier| (self.resource.session_header.clone(), identifier));
        let headers: Vec<(HeaderName, HeaderValue)> = version.clone().into_iter().chain(of_session.clone()).collect();
        // The response to a notification is not evaluated.
        let _ = self.upstream.send(mcp::initialized(url.clone(), headers.clone())).await;
        let has_sessions = self.resource.session_mode == SessionMode::On;
        step.findings.push(match (&identifier, has_sessions) {
            (Some(_), true) => Finding::met(SESSIONS, "the upstream assigns session identifiers"),
            (None, false) => Finding::met(SESSIONS, "the upstream has no sessions, and sessions = \"off\""),
            (None, true) => Finding::note(
                SESSIONS,
                format!("the upstream assigns no session identifiers; sessions = \"off\" in {} spares clients theirs", self.key),
            ),
            (Some(_), false) => {
                let alone = self.upstream.send(mcp::ping(url.clone(), version.into_iter().collect())).await;
                if alone.is_ok_and(|response| response.status.is_success()) {
                    Finding::note(SESSIONS, "the upstream assigns session identifiers, and serves requests without one")
                } else {
                    Finding::problem(
                        SESSIONS,
                        "the upstream rejects requests without its session identifier, which sessions = \"off\" removes",
                        format!("remove sessions = \"off\" from {}, or make the MCP server stateless", self.key),
                    )
                }
            }
        });
        if identifier.is_some() {
            // The session is not needed any more, even if the server cannot end it.
            let _ = self.upstream.send(mcp::delete(url.clone(), headers)).await;
        }
    }

    /// The line with another address.
    fn write(&self, url: &Url) -> String {
        let shown = EscapedText::first(url.as_str(), MAX_SHOWN);
        format!("write upstream = {{ http = \"{shown}\" }} in {}", self.key)
    }
}

/// URLs where an MCP endpoint may be instead.
fn similar_urls(url: &Url) -> Vec<Url> {
    let path = url.path();
    let toggled = match path.strip_suffix('/') {
        Some(bare) if !bare.is_empty() => bare.to_owned(),
        _ => format!("{}/", path.trim_end_matches('/')),
    };
    let paths = [toggled.as_str(), "/mcp", "/mcp/", "/", "/api/mcp"];
    let mut found: Vec<Url> = Vec::new();
    for other in paths.into_iter().map(|path| with_path(url, path)) {
        if other != *url && !found.contains(&other) {
            found.push(other);
        }
    }
    found
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut other = url.clone();
    other.set_path(path);
    other
}

/// The URL with another scheme and the same port.
fn with_scheme(url: &Url, scheme: &str) -> Url {
    let text = format!("{scheme}{}", &url[url::Position::AfterScheme..]);
    Url::parse(&text).unwrap_or_else(|_| url.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn similar_urls_differ() {
        let found = similar_urls(&url("http://127.0.0.1:8000/mcp"));
        let paths: Vec<&str> = found.iter().map(Url::path).collect();
        assert_eq!(paths, ["/mcp/", "/", "/api/mcp"]);
        assert_eq!(similar_urls(&url("http://127.0.0.1:8000"))[0].path(), "/mcp");
    }

    #[test]
    fn schemes_are_replaced() {
        assert_eq!(with_scheme(&url("http://a.example:8443/x"), "https").as_str(), "https://a.example:8443/x");
    }
}
