use std::sync::Arc;

use http::{HeaderValue, Method, header};
use portcullis_discovery::{FetchRequest, UrlPolicy};
use tokio::sync::{Mutex, OwnedMutexGuard};
use url::Url;

use crate::{
    endpoint::ProtectedEndpoint, error::McpError, message_stream::MessageStream,
    transport::SseStream,
};

/// A connection to a server of 2024-11-05: one stream carries all messages of the server. Clones
/// share the stream.
#[derive(Clone)]
pub(super) struct SseConnection {
    /// The URL that messages are posted to. It has the start URL's origin.
    pub(super) message_url: Url,
    stream: Arc<Mutex<MessageStream>>,
}

impl SseConnection {
    /// Opens the stream and waits for the message URL. Fails as [`SseStream::begin`] does, and when
    /// the request fails.
    pub(super) async fn open(
        endpoint: &ProtectedEndpoint,
        max_message: usize,
    ) -> Result<Self, McpError> {
        let request = || {
            FetchRequest::new(Method::GET, endpoint.url().clone(), UrlPolicy::StartOrigin).header(
                header::ACCEPT,
                HeaderValue::from_static("text/event-stream"),
            )
        };
        let response = endpoint.send(request).await?;
        let SseStream {
            message_url,
            body,
            decoder,
            events,
        } = SseStream::begin(response, endpoint.url(), max_message).await?;
        let stream = Arc::new(Mutex::new(MessageStream::with_events(
            body, decoder, events,
        )?));
        Ok(Self {
            message_url,
            stream,
        })
    }

    /// The stream, for one call at a time.
    pub(super) async fn stream(&self) -> OwnedMutexGuard<MessageStream> {
        Arc::clone(&self.stream).lock_owned().await
    }
}
