//! [`EventReader`]: the messages of an event stream.

use std::time::Duration;

use bytes::Bytes;
use portcullis_discovery::BodyStream;
use portcullis_mcp::sse::Decoder;
use tokio::time::timeout;

use crate::context::Context;
use portcullis_mcp_client::{
    McpError,
    transport::{Reservation, ResumePosition},
};

/// The time limit for the end of a stream after its response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How many bytes are decoded at once. Many tiny events take many times their text.
const STEP: usize = 16 * 1024;

/// Reads the messages of a stream, and tracks where it can be resumed.
pub(crate) struct EventReader {
    body: Box<dyn BodyStream>,
    decoder: Decoder,
    /// The bytes that have arrived and are not decoded yet.
    arrived: Bytes,
    /// The share of the budget of the arriving event and of the messages returned last.
    reservation: Reservation,
    /// Where the stream can be resumed after the events read so far.
    pub(crate) position: ResumePosition,
}

/// The events that arrived together.
pub(crate) struct EventBatch {
    /// The data of the events that contain a message.
    pub(crate) messages: Vec<Bytes>,
    /// Whether there was an event, with or without a message.
    pub(crate) has_event: bool,
}

impl EventReader {
    /// Reads a stream from its beginning.
    pub(crate) fn new(context: &Context, body: Box<dyn BodyStream>) -> Self {
        Self::with_decoder(context, body, Decoder::new(context.settings.max_message))
    }

    /// Continues a stream whose beginning the decoder has read.
    pub(crate) fn with_decoder(
        context: &Context,
        body: Box<dyn BodyStream>,
        decoder: Decoder,
    ) -> Self {
        let (reservation, position) = (context.budget.reservation(), ResumePosition::default());
        Self {
            body,
            decoder,
            arrived: Bytes::new(),
            reservation,
            position,
        }
    }

    /// Continues with the stream that resumes the ended one. The position stays.
    pub(super) fn resume(&mut self, context: &Context, body: Box<dyn BodyStream>) {
        self.body = body;
        self.arrived = Bytes::new();
        self.decoder = Decoder::new(context.settings.max_message);
    }

    /// Returns the next events, or `None` if the stream has ended or was interrupted. They must be
    /// processed before the next call, which releases their share of the budget. Waits while the
    /// budget is exhausted. Fails with [`McpError::InvalidStream`] if an event is larger than the
    /// limit or cannot be decoded.
    pub(crate) async fn next(&mut self) -> Result<Option<EventBatch>, McpError> {
        self.reservation
            .shrink_to(self.decoder.held() + self.arrived.len());
        if self.arrived.is_empty() {
            let Some(Ok(piece)) = self.body.next().await else {
                return Ok(None);
            };
            self.reservation
                .grow_to(self.decoder.held() + piece.len())
                .await;
            self.arrived = piece;
        }
        let step = self.arrived.split_to(self.arrived.len().min(STEP));
        let events = self.decoder.push(&step).map_err(McpError::InvalidStream)?;
        let mut batch = EventBatch {
            messages: Vec::with_capacity(events.len()),
            has_event: !events.is_empty(),
        };
        for event in events {
            let has_message = event.is_message() && !event.data.is_empty();
            self.position.record(event.id, event.retry);
            if has_message {
                batch.messages.push(Bytes::from(event.data));
            }
        }
        Ok(Some(batch))
    }

    /// Waits for the end of the stream after its response, at most [`DRAIN_TIMEOUT`], so that the
    /// connection can be reused.
    pub(super) async fn drain(&mut self) {
        self.reservation.shrink_to(0);
        let end = async { while let Some(Ok(_)) = self.body.next().await {} };
        let _ = timeout(DRAIN_TIMEOUT, end).await;
    }
}
