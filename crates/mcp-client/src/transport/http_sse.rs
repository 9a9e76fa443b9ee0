//! HTTP with SSE, the transport of MCP 2024-11-05: how a server that uses it is recognized, and how
//! its stream begins.

use std::time::Duration;

use http::StatusCode;
use portcullis_discovery::{BodyStream, OpenResponse};
use portcullis_mcp::{
    ErrorCode,
    sse::{Decoder, Event},
};
use portcullis_metadata::syntax::has_encoded_path_syntax;
use tokio::time::timeout;
use url::Url;

use super::response::MediaType;
use crate::error::McpError;

/// A stream whose message URL has arrived.
pub struct SseStream {
    /// The URL that messages are posted to.
    pub message_url: Url,
    /// The rest of the stream.
    pub body: Box<dyn BodyStream>,
    /// The decoder of the stream, which has read the message URL.
    pub decoder: Decoder,
    /// The events that arrived together with the message URL, after it.
    pub events: Vec<Event>,
}

/// The time limit for the server to send its message URL.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of the message URL, in bytes.
const MAX_ENDPOINT: usize = 16 * 1024;

impl SseStream {
    /// Waits for the message URL in the response to a GET to the start URL, at most 10 s. It must
    /// have the start URL's origin and lie in its folder. Events before it are ignored.
    ///
    /// # Errors
    /// Returns [`McpError::Status`] or [`McpError::Fetch`] for a failure of the server or the
    /// network; [`McpError::InvalidStream`] for an event that is too large;
    /// [`McpError::NoSseEndpoint`] when the server does not support this transport, sends another
    /// URL, or ends the stream or lets the time pass without one.
    pub async fn begin(
        response: OpenResponse,
        start: &Url,
        max_message: usize,
    ) -> Result<Self, McpError> {
        if response.status.is_server_error() {
            return Err(McpError::status(response).await);
        }
        if !response.status.is_success()
            || MediaType::of(&response.headers) != MediaType::EventStream
        {
            return Err(McpError::NoSseEndpoint);
        }
        let mut body = response.body;
        let mut decoder = Decoder::new(max_message);
        let reading = timeout(ENDPOINT_TIMEOUT, endpoint_event(&mut *body, &mut decoder));
        let (endpoint, events) = reading.await.unwrap_or(Err(McpError::NoSseEndpoint))?;
        let message_url = message_url(&endpoint, start).ok_or(McpError::NoSseEndpoint)?;
        Ok(Self {
            message_url,
            body,
            decoder,
            events,
        })
    }
}

/// Whether a server of 2024-11-05 rejects a POST to its stream's URL with this status and JSON-RPC
/// error code. A newer server gives a reason: one of the codes that 2026-07-28 requires for a
/// rejected request.
pub fn suggests_http_sse(status: StatusCode, code: Option<i64>) -> bool {
    const MODERN: [ErrorCode; 4] = [
        ErrorCode::MethodNotFound,
        ErrorCode::HeaderMismatch,
        ErrorCode::MissingRequiredClientCapability,
        ErrorCode::UnsupportedProtocolVersion,
    ];
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    ) && !code.is_some_and(|code| MODERN.iter().any(|modern| modern.value() == code))
}

/// The data of the `endpoint` event, and the events that arrived with it, after it.
async fn endpoint_event(
    body: &mut dyn BodyStream,
    decoder: &mut Decoder,
) -> Result<(String, Vec<Event>), McpError> {
    while let Some(piece) = body.next().await {
        let events = decoder
            .push(&piece.map_err(McpError::Fetch)?)
            .map_err(McpError::InvalidStream)?;
        let mut events = events
            .into_iter()
            .skip_while(|event| event.event.as_deref() != Some("endpoint"));
        if let Some(endpoint) = events.next() {
            return Ok((endpoint.data, events.collect()));
        }
    }
    Err(McpError::NoSseEndpoint)
}

/// The URL that a server names for messages. It receives the token, so it must have the start URL's
/// origin, and every server must resolve it to the folder of the start URL's path: a server at
/// `/a/sse` can name `/a/messages`, but not `/b/messages`, which can belong to another party.
fn message_url(named: &str, start: &Url) -> Option<Url> {
    if named.len() > MAX_ENDPOINT {
        return None;
    }
    let mut endpoint = start.join(named.trim()).ok()?;
    endpoint.set_fragment(None);
    if endpoint.origin() != start.origin()
        || !endpoint.username().is_empty()
        || endpoint.password().is_some()
    {
        tracing::warn!(
            "the server's message URL has another origin or user information, and is rejected"
        );
        return None;
    }
    let folder = start
        .path()
        .rfind('/')
        .map_or("/", |last| &start.path()[..=last]);
    if endpoint
        .path()
        .strip_prefix(folder)
        .is_none_or(has_encoded_path_syntax)
    {
        tracing::warn!("the server's message URL is outside {folder} and is rejected");
        return None;
    }
    Some(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I9: the message URL has the origin of the start URL and lies in its folder.
    #[test]
    fn messages_go_to_the_folder_of_the_start_url_alone() {
        let start = Url::parse("https://mcp.example.com/a/sse?a=1").unwrap();
        for (named, expected) in [
            (
                "/a/messages?session=1#x",
                "https://mcp.example.com/a/messages?session=1",
            ),
            (" messages\r", "https://mcp.example.com/a/messages"),
            (
                "https://mcp.example.com:443/a/b/m",
                "https://mcp.example.com/a/b/m",
            ),
            (
                "m?next=%2Fb%2F..",
                "https://mcp.example.com/a/m?next=%2Fb%2F..",
            ),
        ] {
            assert_eq!(message_url(named, &start).unwrap().as_str(), expected);
        }
        for foreign in [
            "https://evil.example/a/m",
            "//evil.example/a/m",
            "http://mcp.example.com/a/m",
            "https://mcp.example.com:444/a/m",
            "https://user@mcp.example.com/a/m",
            "/messages",
            "/b/messages",
            "/a",
            "../b/messages",
            "/a/%2e%2e/b/messages",
            "/a/%252e%252e/b/messages",
            "/a/..%25252fb/messages",
            "/a/..%2fb/messages",
            "/a/..%5Cb/messages",
            "..%2Fb/messages",
            "data:,x",
            "https://",
        ] {
            assert_eq!(message_url(foreign, &start), None, "{foreign}");
        }
    }
}
