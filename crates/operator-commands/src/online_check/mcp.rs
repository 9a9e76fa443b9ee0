//! The messages that are sent to an upstream, and what its responses mean.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use portcullis_discovery::FetchResponse;
use portcullis_mcp::{Revision, Revisions, header as mcp_header, meta};
use portcullis_metadata::EscapedText;
use serde_json::{Value, json};
use url::Url;

use super::upstream_connection::UpstreamRequest;

const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The most characters of a server's message that are shown.
const MAX_SHOWN: usize = 200;

/// What a response to a message is.
pub(super) enum Answer {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// It is not a JSON-RPC response.
    Other,
}

/// The first message of a client: `initialize`, or `server/discover` where only the modern revision
/// is served. `version` is that of this program.
pub(super) fn first_message(url: Url, served: Revisions, version: &str) -> UpstreamRequest {
    let client = json!({ "name": "portcullis-check", "version": version });
    let legacy = served.iter().find(|revision| !revision.is_modern());
    let Some(revision) = legacy else {
        let revision = Revision::V2026_07_28;
        let meta = json!({
            meta::PROTOCOL_VERSION: revision.as_str(),
            meta::CLIENT_CAPABILITIES: {},
            meta::CLIENT_INFO: client,
        });
        let headers = [
            (
                mcp_header::PROTOCOL_VERSION,
                HeaderValue::from_static(revision.as_str()),
            ),
            (
                mcp_header::METHOD,
                HeaderValue::from_static("server/discover"),
            ),
        ];
        return post(
            url,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta } }),
            headers,
        );
    };
    let params =
        json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
    post(
        url,
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        [],
    )
}

/// The notification after `initialize`.
pub(super) fn initialized(url: Url, headers: Vec<(HeaderName, HeaderValue)>) -> UpstreamRequest {
    post(
        url,
        &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        headers,
    )
}

/// A request of an open session.
pub(super) fn ping(url: Url, headers: Vec<(HeaderName, HeaderValue)>) -> UpstreamRequest {
    post(
        url,
        &json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }),
        headers,
    )
}

/// The end of a session.
pub(super) fn delete(url: Url, headers: Vec<(HeaderName, HeaderValue)>) -> UpstreamRequest {
    UpstreamRequest {
        method: Method::DELETE,
        url,
        headers,
        body: Bytes::new(),
    }
}

/// The first request of a client of the HTTP+SSE transport (2024-11-05).
pub(super) fn event_stream(url: Url) -> UpstreamRequest {
    UpstreamRequest {
        method: Method::GET,
        url,
        headers: vec![(header::ACCEPT, EVENTS)],
        body: Bytes::new(),
    }
}

/// Whether a response is the start of the HTTP+SSE transport.
pub(super) fn is_former_transport(response: &FetchResponse) -> bool {
    response.status.is_success() && response.body.starts_with(b"event: endpoint")
}

/// Reads a response. For an event stream, `response.body` already is the data of the first response
/// in it.
pub(super) fn answer(response: &FetchResponse) -> Answer {
    let Ok(message) = serde_json::from_slice::<Value>(&response.body) else {
        return Answer::Other;
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Answer::Other;
    }
    if let Some(result) = message.get("result") {
        return Answer::Result(result.clone());
    }
    let Some(error) = message.get("error") else {
        return Answer::Other;
    };
    let text = error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Answer::Error {
        code: error
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or_default(),
        message: EscapedText::first(text, MAX_SHOWN).to_string(),
    }
}

fn post(
    url: Url,
    message: &Value,
    more: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
) -> UpstreamRequest {
    let mut headers = vec![(header::ACCEPT, BOTH_TYPES), (header::CONTENT_TYPE, JSON)];
    headers.extend(more);
    UpstreamRequest {
        method: Method::POST,
        url,
        headers,
        body: message.to_string().into(),
    }
}
