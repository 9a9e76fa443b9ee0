//! HTTP with SSE, the transport of 2024-11-05: one stream carries all messages of the server.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use http::{HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{BodyStream, FetchRequest, UrlPolicy};
use portcullis_mcp::{
    ErrorCode,
    sse::{Decoder, Event},
};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};
use url::Url;

use super::{McpClient, message_stream::MessageStream};
use crate::{error::McpError, message_endpoint::message_endpoint, response::Content};

/// An open stream, and the URL that messages are posted to.
#[derive(Clone)]
pub(super) struct SseConnection {
    pub(super) message_url: Url,
    stream: Arc<Mutex<MessageStream>>,
}

/// How long the server may take to name its message URL.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

impl SseConnection {
    /// The stream, for one call at a time.
    pub(super) async fn stream(&self) -> OwnedMutexGuard<MessageStream> {
        Arc::clone(&self.stream).lock_owned().await
    }
}

impl McpClient {
    /// Opens the stream and waits for the message URL, which must have the start URL's origin and lie in its folder.
    ///
    /// # Errors
    /// [`McpError::NoSseEndpoint`] when the server does not speak this transport, or names another URL.
    pub(super) async fn connect_sse(&self) -> Result<SseConnection, McpError> {
        let request = || {
            FetchRequest::new(Method::GET, self.endpoint.url().clone(), UrlPolicy::StartOrigin)
                .header(header::ACCEPT, HeaderValue::from_static("text/event-stream"))
        };
        let response = self.endpoint.send(request).await?;
        if response.status.is_server_error() {
            return Err(McpError::Status { status: response.status });
        }
        if !response.status.is_success() || Content::of(&response.headers) != Content::Stream {
            return Err(McpError::NoSseEndpoint);
        }
        let (mut body, mut decoder) = (response.body, Decoder::new(self.settings.max_message));
        let first = timeout(ENDPOINT_TIMEOUT, first_event(&mut *body, &mut decoder)).await.ok().flatten();
        let Some((event, after)) = first else { return Err(McpError::NoSseEndpoint) };
        let Some(message_url) = message_endpoint(&event, self.endpoint.url()) else {
            return Err(McpError::NoSseEndpoint);
        };
        let stream = Arc::new(Mutex::new(MessageStream::resumed_with(body, decoder, after)?));
        Ok(SseConnection { message_url, stream })
    }
}

/// Whether a server of 2024-11-05 rejects a POST to its stream's URL in this way. A newer server gives a reason, with a
/// code that 2026-07-28 defines for it.
pub(super) fn suggests_http_sse(error: &McpError) -> bool {
    const MODERN: [ErrorCode; 4] = [
        ErrorCode::MethodNotFound,
        ErrorCode::HeaderMismatch,
        ErrorCode::MissingRequiredClientCapability,
        ErrorCode::UnsupportedProtocolVersion,
    ];
    let (status, code) = match error {
        McpError::Status { status } => (*status, None),
        McpError::Rpc(error) => (error.status, Some(error.code)),
        _ => return false,
    };
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
        && !code.is_some_and(|code| MODERN.iter().any(|modern| modern.value() == code))
}

/// The first event, and those that arrived with it.
async fn first_event(body: &mut dyn BodyStream, decoder: &mut Decoder) -> Option<(Event, Vec<Event>)> {
    loop {
        let mut events: VecDeque<Event> = decoder.push(&body.next().await?.ok()?).ok()?.into();
        if let Some(first) = events.pop_front() {
            return Some((first, events.into()));
        }
    }
}
