//! HTTP with SSE, the transport of MCP 2024-11-05: how a server that uses it is recognized, and how its stream begins.

use std::time::Duration;

use http::StatusCode;
use portcullis_discovery::{BodyStream, OpenResponse};
use portcullis_mcp::{
    ErrorCode,
    sse::{Decoder, Event},
};
use tokio::time::timeout;
use url::Url;

use crate::{error::McpError, response::MediaType};

/// A stream whose message URL has arrived.
pub(crate) struct SseStream {
    /// The URL that messages are posted to.
    pub(crate) message_url: Url,
    pub(crate) body: Box<dyn BodyStream>,
    pub(crate) decoder: Decoder,
    /// The events that arrived together with the message URL.
    pub(crate) events: Vec<Event>,
}

/// The time limit for the server to send its message URL.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

impl SseStream {
    /// Waits for the message URL in the response to a GET to the start URL. It must have the start URL's origin and lie
    /// in its folder.
    ///
    /// # Errors
    /// [`McpError::Status`] for a temporary failure of the server; [`McpError::NoSseEndpoint`] when the server does not
    /// support this transport, or sends another URL.
    pub(crate) async fn begin(response: OpenResponse, start: &Url, max_message: usize) -> Result<Self, McpError> {
        if response.status.is_server_error() {
            return Err(McpError::status(response).await);
        }
        if !response.status.is_success() || MediaType::of(&response.headers) != MediaType::EventStream {
            return Err(McpError::NoSseEndpoint);
        }
        let mut body = response.body;
        let mut decoder = Decoder::new(max_message);
        let first = timeout(ENDPOINT_TIMEOUT, first_event(&mut *body, &mut decoder)).await.ok().flatten();
        let Some((event, events)) = first else { return Err(McpError::NoSseEndpoint) };
        let Some(message_url) = message_endpoint(&event, start) else { return Err(McpError::NoSseEndpoint) };
        Ok(Self { message_url, body, decoder, events })
    }
}

/// Whether a server of 2024-11-05 rejects a POST to its stream's URL with this status and JSON-RPC error code. A newer
/// server gives a reason, with a code that 2026-07-28 defines for it.
pub(crate) fn suggests_http_sse(status: StatusCode, code: Option<i64>) -> bool {
    const MODERN: [ErrorCode; 4] = [
        ErrorCode::MethodNotFound,
        ErrorCode::HeaderMismatch,
        ErrorCode::MissingRequiredClientCapability,
        ErrorCode::UnsupportedProtocolVersion,
    ];
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
        && !code.is_some_and(|code| MODERN.iter().any(|modern| modern.value() == code))
}

/// The first event, and those that arrived with it.
async fn first_event(body: &mut dyn BodyStream, decoder: &mut Decoder) -> Option<(Event, Vec<Event>)> {
    loop {
        let mut events = decoder.push(&body.next().await?.ok()?).ok()?;
        if !events.is_empty() {
            let first = events.remove(0);
            return Some((first, events));
        }
    }
}

/// The URL of an `endpoint` event. It receives the token, so it must have the start URL's origin and lie in the folder
/// of its path: a server at `/a/sse` can name `/a/messages`, but not `/b/messages`, which can belong to another party.
fn message_endpoint(event: &Event, start: &Url) -> Option<Url> {
    if event.event.as_deref() != Some("endpoint") {
        return None;
    }
    let mut endpoint = start.join(event.data.trim()).ok()?;
    endpoint.set_fragment(None);
    if endpoint.origin() != start.origin() || !endpoint.username().is_empty() || endpoint.password().is_some() {
        tracing::warn!("the server's message URL has another origin and is rejected");
        return None;
    }
    let folder = start.path().rfind('/').map_or("/", |last| &start.path()[..=last]);
    if !endpoint.path().starts_with(folder) {
        tracing::warn!("the server's message URL is outside {folder} and is rejected");
        return None;
    }
    Some(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_servers_own_origin_alone() {
        let start = Url::parse("https://mcp.example.com/sse?a=1").unwrap();
        let named = |data: &str| {
            let event = Event { event: Some("endpoint".into()), ..Event::message(data) };
            message_endpoint(&event, &start).map(|url| url.to_string())
        };
        assert_eq!(named("/messages?session=1#x").as_deref(), Some("https://mcp.example.com/messages?session=1"));
        assert_eq!(named("messages").as_deref(), Some("https://mcp.example.com/messages"));
        assert_eq!(named("https://mcp.example.com:443/m").as_deref(), Some("https://mcp.example.com/m"));

        for foreign in [
            "https://evil.example/m",
            "//evil.example/m",
            "http://mcp.example.com/m",
            "https://mcp.example.com:444/m",
            "https://user@mcp.example.com/m",
            "data:,x",
            "https://",
        ] {
            assert_eq!(named(foreign), None, "{foreign}");
        }
        assert!(message_endpoint(&Event::message("/messages"), &start).is_none());
    }
}
