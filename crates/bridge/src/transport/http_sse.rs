//! HTTP with SSE, the transport of 2024-11-05, for the bridge.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use portcullis_mcp::sse::Event;
use tokio::sync::watch;

use super::event_stream::EventReader;
use crate::{context::Context, endpoint::TokenRenewal, state::sse_connection::SseConnection};
use portcullis_mcp_client::{McpError, transport::SseStream};

/// Opens the stream, waits for the message URL, and starts the task that forwards the stream's
/// messages. The task ends with the connection. Fails as [`SseStream::begin`] does, and when the
/// request fails.
pub(crate) async fn connect(
    context: &Arc<Context>,
    token_renewal: TokenRenewal,
) -> Result<Arc<SseConnection>, McpError> {
    let response = context
        .endpoint
        .send(context.endpoint.get(HeaderMap::new()), token_renewal)
        .await?;
    let SseStream {
        message_url,
        body,
        decoder,
        events,
    } = SseStream::begin(
        response,
        context.endpoint.url(),
        context.settings.max_message,
    )
    .await?;
    tracing::info!("the server uses HTTP with SSE (2024-11-05)");
    let (sender, lost) = watch::channel(false);
    let reader = tokio::spawn(read(
        Arc::clone(context),
        EventReader::with_decoder(context, body, decoder),
        events,
        sender,
    ));
    Ok(Arc::new(SseConnection::new(message_url, lost, reader)))
}

/// Forwards messages until the stream ends: first those of the events that arrived with the message
/// URL.
async fn read(
    context: Arc<Context>,
    mut events: EventReader,
    first: Vec<Event>,
    lost: watch::Sender<bool>,
) {
    for event in first.into_iter().filter(Event::is_message) {
        forward(&context, event.data.into()).await;
    }
    loop {
        match events.next().await {
            Ok(Some(batch)) => {
                for message in batch.messages {
                    forward(&context, message).await;
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(reason = error.code(), "{error}");
                break;
            }
        }
    }
    lost.send_replace(true);
}

/// Forwards one message. An invalid one is dropped and does not end the shared stream.
async fn forward(context: &Context, data: Bytes) {
    if !data.is_empty()
        && let Err(error) = context.forward(data, None).await
    {
        tracing::warn!(reason = error.code(), "the server sent an invalid message");
    }
}
