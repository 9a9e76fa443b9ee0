//! [`EventReader`]: the messages of an event stream.

use std::time::Duration;

use bytes::Bytes;
use portcullis_discovery::BodyStream;
use portcullis_mcp::sse::Decoder;
use tokio::time::timeout;

use super::resumption::ResumePosition;
use crate::{bridge::context::Context, error::McpError, message_budget::Reservation};

/// The maximum length of an event identifier to resume after: it is sent in a header.
const MAX_EVENT_ID: usize = 4096;
/// How long to wait for the end of a stream after its response, so that the connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the messages of a stream, and tracks where it can be resumed.
pub(crate) struct EventReader {
    pub(super) body: Box<dyn BodyStream>,
    pub(super) decoder: Decoder,
    /// The share of the budget of the arriving event and of the messages returned last.
    reservation: Reservation,
    pub(crate) position: ResumePosition,
    /// Whether an event arrived, including events without a message.
    pub(crate) received_event: bool,
}

impl EventReader {
    pub(crate) fn new(context: &Context, body: Box<dyn BodyStream>) -> Self {
        Self::with_decoder(context, body, Decoder::new(context.settings.max_message))
    }

    /// Continues a stream whose beginning the decoder has read.
    pub(crate) fn with_decoder(context: &Context, body: Box<dyn BodyStream>, decoder: Decoder) -> Self {
        let reservation = context.budget.reservation();
        Self { body, decoder, reservation, position: ResumePosition::default(), received_event: false }
    }

    /// Returns the next messages, or `None` if the stream has ended or was interrupted. They must be processed before the next call,
    /// which releases their share of the budget.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Bytes>>, McpError> {
        self.reservation.shrink_to(self.decoder.held());
        let Some(Ok(piece)) = self.body.next().await else { return Ok(None) };
        self.reservation.grow_to(self.decoder.held() + piece.len()).await;
        let events = self.decoder.push(&piece).map_err(McpError::InvalidStream)?;
        let mut messages = Vec::with_capacity(events.len());
        for event in events {
            self.received_event = true;
            // An empty identifier clears the previous one (HTML section 9.2.6).
            self.position.last_event = event.id.or(self.position.last_event.take());
            self.position.last_event.take_if(|id| id.is_empty() || id.len() > MAX_EVENT_ID);
            self.position.retry = event.retry.or(self.position.retry);
            let is_message = event.event.as_deref().is_none_or(|event_type| event_type == "message");
            if is_message && !event.data.is_empty() {
                messages.push(Bytes::from(event.data));
            }
        }
        Ok(Some(messages))
    }

    /// Waits for the end of the stream after its response, so that the connection can be reused.
    pub(super) async fn drain(&mut self) {
        self.reservation.shrink_to(0);
        let end = async { while let Some(Ok(_)) = self.body.next().await {} };
        let _ = timeout(DRAIN_TIMEOUT, end).await;
    }
}
