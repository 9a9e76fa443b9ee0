//! HTTP with SSE, the transport of 2024-11-05.

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

/// How long the server may take to name its address.
const ENDPOINT_WITHIN: Duration = Duration::from_secs(10);

/// Opens the stream, and waits for the address.
///
/// # Errors
/// [`McpError::Status`] when the server fails for now, and [`McpError::NoSseEndpoint`] when the server does not speak this transport, or names an address of another origin.
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
    let first = timeout(ENDPOINT_WITHIN, first_event(&mut *body, &mut decoder)).await.ok().flatten();
    let Some((endpoint, after)) =
        first.and_then(|(event, after)| Some((message_endpoint(&event, context.endpoint.url())?, after)))
    else {
        return Err(McpError::NoSseEndpoint);
    };
    tracing::info!("the server speaks HTTP with SSE (2024-11-05)");
    let (sender, lost) = watch::channel(false);
    let reader =
        tokio::spawn(read(Arc::clone(context), EventReader::with_decoder(context, body, decoder), after, sender));
    Ok(Arc::new(SseConnection::new(endpoint, lost, reader)))
}

/// The first event, and those that came with it.
async fn first_event(body: &mut dyn BodyStream, decoder: &mut Decoder) -> Option<(Event, Vec<Event>)> {
    loop {
        let mut events = decoder.push(&body.next().await?.ok()?).ok()?;
        if !events.is_empty() {
            let first = events.remove(0);
            return Some((first, events));
        }
    }
}

/// Passes on what comes until the stream ends.
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

/// One bad message of a stream that all share ends only itself.
async fn forward(context: &Context, data: bytes::Bytes) {
    if !data.is_empty()
        && let Err(error) = context.forward(data, None).await
    {
        tracing::warn!(reason = error.code(), "the server sent what is no message");
    }
}
