//! HTTP with SSE, the transport of 2024-11-05, for the bridge.

use std::{sync::Arc, time::Duration};

use portcullis_discovery::BodyStream;
use portcullis_mcp::sse::{Decoder, Event};
use tokio::{sync::watch, time::timeout};

use crate::{
    bridge::{
        context::Context, endpoint::TokenRenewal, state::sse_connection::SseConnection,
        transport::event_stream::EventReader,
    },
    error::McpError,
    message_endpoint::message_endpoint,
    response::Content,
};

/// The time limit for the server to send its message URL.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the stream and waits for the message URL.
///
/// # Errors
/// [`McpError::Status`] for a temporary failure of the server; [`McpError::NoSseEndpoint`] when the server does not
/// support this transport, or its message URL has another origin.
pub(crate) async fn connect(
    context: &Arc<Context>,
    token_renewal: TokenRenewal,
) -> Result<Arc<SseConnection>, McpError> {
    let response = context.endpoint.send(context.endpoint.get(http::HeaderMap::new()), token_renewal).await?;
    if response.status.is_server_error() {
        return Err(McpError::Status { status: response.status });
    }
    if !response.status.is_success() || Content::of(&response.headers) != Content::Stream {
        return Err(McpError::NoSseEndpoint);
    }
    let (mut body, mut decoder) = (response.body, Decoder::new(context.settings.max_message));
    let first = timeout(ENDPOINT_TIMEOUT, first_event(&mut *body, &mut decoder)).await.ok().flatten();
    let Some((endpoint, after)) =
        first.and_then(|(event, after)| Some((message_endpoint(&event, context.endpoint.url())?, after)))
    else {
        return Err(McpError::NoSseEndpoint);
    };
    tracing::info!("the server uses HTTP with SSE (2024-11-05)");
    let (sender, lost) = watch::channel(false);
    let reader =
        tokio::spawn(read(Arc::clone(context), EventReader::with_decoder(context, body, decoder), after, sender));
    Ok(Arc::new(SseConnection::new(endpoint, lost, reader)))
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

/// Forwards messages until the stream ends.
async fn read(context: Arc<Context>, mut events: EventReader, after: Vec<Event>, lost: watch::Sender<bool>) {
    for event in after {
        forward(&context, event.data.into()).await;
    }
    loop {
        match events.next().await {
            Ok(Some(messages)) => {
                for message in messages {
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
async fn forward(context: &Context, data: bytes::Bytes) {
    if !data.is_empty()
        && let Err(error) = context.forward(data, None).await
    {
        tracing::warn!(reason = error.code(), "the server sent an invalid message");
    }
}
