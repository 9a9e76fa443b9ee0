//! [`MessageStream`]: the messages of an event stream or of a JSON response.

use std::{collections::VecDeque, fmt, time::Duration};

use bytes::Bytes;
use http::HeaderValue;
use portcullis_discovery::BodyStream;
use portcullis_mcp::sse::{Decoder, Event};
use serde_json::Value;

use crate::{
    error::McpError,
    transport::{ResumeAttempts, ResumePosition, json::MessageTexts},
};

/// The messages of a stream, each returned as soon as it is complete. Dropping it closes the
/// stream.
///
/// Events without data, which servers send as keep-alive, and events of other types than `message`
/// are ignored. The size of an event is limited
/// ([`McpSettings::max_message`](crate::McpSettings::max_message)); the wait for the next one is
/// not.
pub struct MessageStream {
    /// `None` after the end.
    body: Option<Box<dyn BodyStream>>,
    decoder: Decoder,
    /// The bytes of the stream that have arrived and are not decoded yet.
    arrived: Bytes,
    /// The messages that have arrived and are not returned yet.
    ready: VecDeque<MessageTexts>,
    /// Where the stream can be resumed.
    position: ResumePosition,
    /// The resumptions since the last event.
    attempts: ResumeAttempts,
}

/// How many bytes of a stream are decoded at once. Many tiny events take many times their text.
const STEP: usize = 16 * 1024;

impl MessageStream {
    /// Reads an event stream from its beginning.
    pub(super) fn new(body: Box<dyn BodyStream>, max_message: usize) -> Self {
        Self::with_body(Some(body), Decoder::new(max_message))
    }

    /// Continues a stream of which the decoder has read these events. Fails with
    /// [`McpError::InvalidResponse`] when one of the messages is not JSON.
    pub(super) fn with_events(
        body: Box<dyn BodyStream>,
        decoder: Decoder,
        events: Vec<Event>,
    ) -> Result<Self, McpError> {
        let mut stream = Self::with_body(Some(body), decoder);
        stream.receive(events)?;
        Ok(stream)
    }

    /// Returns the messages of a response that is not a stream. Fails with
    /// [`McpError::InvalidResponse`] when it is an array that is not JSON.
    pub(super) fn of_json(body: Bytes) -> Result<Self, McpError> {
        let mut stream = Self::with_body(None, Decoder::new(0));
        stream
            .ready
            .push_back(MessageTexts::split(body).ok_or(McpError::InvalidResponse)?);
        Ok(stream)
    }

    fn with_body(body: Option<Box<dyn BodyStream>>, decoder: Decoder) -> Self {
        let (position, attempts) = (ResumePosition::default(), ResumeAttempts::default());
        Self {
            body,
            decoder,
            arrived: Bytes::new(),
            ready: VecDeque::new(),
            position,
            attempts,
        }
    }

    /// Returns the next message. `None` when the stream has ended.
    ///
    /// # Errors
    /// When the stream is interrupted, an event is too large, or a message is not JSON that a
    /// [`Value`] can represent. The stream has then ended.
    pub async fn next(&mut self) -> Result<Option<Value>, McpError> {
        let Some(text) = self.next_text().await? else {
            return Ok(None);
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|_| self.end(McpError::InvalidResponse))
    }

    /// Returns the text of the next message, which can be anything but a part of an invalid array.
    /// `None` when the stream has ended. Fails when the stream is interrupted, an event is too
    /// large, or an array is not JSON. The stream has then ended.
    pub(super) async fn next_text(&mut self) -> Result<Option<Bytes>, McpError> {
        loop {
            while let Some(texts) = self.ready.front_mut() {
                match texts.next() {
                    Some(text) => return Ok(Some(text)),
                    None => drop(self.ready.pop_front()),
                }
            }
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            if self.arrived.is_empty() {
                self.arrived = match body.next().await {
                    Some(Ok(piece)) => piece,
                    Some(Err(error)) => return Err(self.end(McpError::Fetch(error))),
                    None => {
                        self.body = None;
                        return Ok(None);
                    }
                };
            }
            let step = self.arrived.split_to(self.arrived.len().min(STEP));
            let events = self.decoder.push(&step).map_err(McpError::InvalidStream);
            if let Err(error) = events.and_then(|events| self.receive(events)) {
                return Err(self.end(error));
            }
        }
    }

    fn end(&mut self, error: McpError) -> McpError {
        self.body = None;
        self.ready.clear();
        error
    }

    /// Returns the identifier of the event after which the stream can be resumed, and the delay
    /// before that. Counts an attempt. `None` if the stream has no such event, or after too many
    /// attempts without an event.
    pub(super) fn next_attempt(&mut self) -> Option<(HeaderValue, Duration)> {
        let event_id = self.position.last_event_id()?;
        let delay = self.attempts.next_delay(&self.position);
        (!self.attempts.are_exhausted()).then_some((event_id, delay))
    }

    /// Continues with the stream that resumes this ended one.
    pub(super) fn resume_with(&mut self, resumed: MessageStream) {
        let (position, attempts) = (std::mem::take(&mut self.position), self.attempts);
        *self = MessageStream {
            position,
            attempts,
            ..resumed
        };
    }

    fn receive(&mut self, events: Vec<Event>) -> Result<(), McpError> {
        for event in events {
            let has_message = event.is_message() && !event.data.is_empty();
            self.position.record(event.id, event.retry);
            if has_message {
                self.ready.push_back(
                    MessageTexts::split(event.data.into()).ok_or(McpError::InvalidResponse)?,
                );
            }
            self.attempts.record(usize::from(has_message));
        }
        Ok(())
    }
}

/// Shows the number of messages, not their content.
impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageStream")
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}
