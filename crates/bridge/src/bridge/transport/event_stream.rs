//! Responses that are event streams: reads them, and resumes them after a disconnection.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderValue;
use portcullis_discovery::{BodyStream, OpenResponse};
use portcullis_mcp::{header as names, sse::Decoder};
use tokio::time::{sleep, timeout};

use crate::{
    bridge::{
        context::{Context, Request},
        endpoint::ErrorResponse,
        state::session::Session,
    },
    error::McpError,
    message_budget::Reservation,
    response::MediaType,
    resumption::{MAX_RESUME_AFTER, MAX_RESUMES, RESUME_AFTER},
};

/// The maximum of the server's `retry` field.
const MAX_RETRY: Duration = Duration::from_secs(60 * 60);
/// The minimum of the server's `retry` field. It doubles after each stream without a message, up to the second value.
const MIN_RETRY: Duration = Duration::from_millis(20);
const MAX_MIN_RETRY: Duration = Duration::from_secs(1);
/// The maximum length of an event identifier to resume after: it is sent in a header.
const MAX_EVENT_ID: usize = 4096;
/// How long to wait for the end of a stream after its response, so that the connection can be reused.
const DRAIN: Duration = Duration::from_secs(1);

/// Forwards the response to a request, and the messages before it.
///
/// An interrupted stream is resumed if it belongs to a legacy session and had an event identifier.
pub(crate) async fn forward_response(
    context: &Arc<Context>,
    request: &Request,
    response: OpenResponse,
    session: Option<&Session>,
) -> Result<(), McpError> {
    match MediaType::of(&response.headers) {
        MediaType::Json => {
            let mut reservation = context.budget.reservation();
            let body = context.endpoint.read(response.body, &mut reservation).await?;
            if context.forward(body.into(), Some(request)).await? { Ok(()) } else { Err(McpError::InvalidResponse) }
        }
        MediaType::EventStream => read(context, request, response.body, session).await,
        MediaType::Other => Err(McpError::unexpected_content(response).await),
    }
}

async fn read(
    context: &Arc<Context>,
    request: &Request,
    body: Box<dyn BodyStream>,
    session: Option<&Session>,
) -> Result<(), McpError> {
    let (mut events, mut attempts) = (EventReader::new(context, body), ResumeAttempts::default());
    loop {
        match events.next().await? {
            Some(batch) => {
                attempts.record(&mut events, &batch);
                let mut answered = false;
                for data in batch {
                    answered = answered || context.forward(data, Some(request)).await?;
                }
                if answered {
                    events.drain().await;
                    return Ok(());
                }
            }
            None => {
                let Some(session) = session else { return Err(McpError::StreamEnded) };
                events.body = resume(context, request, session, &events.position, &mut attempts).await?;
                events.decoder = Decoder::new(context.settings.max_message);
            }
        }
    }
}

/// Resumes a legacy stream after the delay that its server requires.
async fn resume(
    context: &Arc<Context>,
    request: &Request,
    session: &Session,
    position: &ResumePosition,
    attempts: &mut ResumeAttempts,
) -> Result<Box<dyn BodyStream>, McpError> {
    let Some(last_event) = position.last_event() else { return Err(McpError::StreamEnded) };
    loop {
        let wait = attempts.next_delay(position);
        if attempts.without_event > MAX_RESUMES {
            return Err(McpError::StreamEnded);
        }
        sleep(wait).await;
        let now = context.sessions.current().filter(|now| now.generation == session.generation);
        let Some(now) = now else { return Err(McpError::SessionLost) };
        let mut headers = context.sessions.headers(Some(&now));
        headers.insert(names::LAST_EVENT_ID, last_event.clone());
        match context.endpoint.send(context.endpoint.get(headers), request.token_renewal).await {
            Ok(answer) if answer.status.is_success() && MediaType::of(&answer.headers) == MediaType::EventStream => {
                return Ok(answer.body);
            }
            Ok(answer) if answer.status.is_server_error() => {}
            Ok(answer) => {
                let refusal = ErrorResponse::read(&context.endpoint, answer).await;
                return Err(if refusal.is_unknown_session() { McpError::SessionLost } else { McpError::StreamEnded });
            }
            Err(McpError::Fetch(_)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Counts the resumptions of a stream.
#[derive(Default)]
pub(crate) struct ResumeAttempts {
    /// Since the last event, including events without a message: a server can let its client poll while it works.
    without_event: u32,
    /// Since the last message.
    without_message: u32,
}

impl ResumeAttempts {
    /// Resets the counters according to the events received.
    pub(crate) fn record(&mut self, events: &mut EventReader, messages: &[Bytes]) {
        if std::mem::take(&mut events.received_event) {
            self.without_event = 0;
        }
        if !messages.is_empty() {
            self.without_message = 0;
        }
    }

    /// Counts a resumption and returns the delay before it.
    pub(crate) fn next_delay(&mut self, position: &ResumePosition) -> Duration {
        self.without_event = self.without_event.saturating_add(1);
        let least = MIN_RETRY.saturating_mul(1 << self.without_message.min(6)).min(MAX_MIN_RETRY);
        self.without_message = self.without_message.saturating_add(1);
        position.wait(self.without_event).max(least)
    }
}

/// Reads the messages of a stream, and tracks where it can be resumed.
pub(crate) struct EventReader {
    body: Box<dyn BodyStream>,
    decoder: Decoder,
    /// The share of the budget of the arriving event and of the messages returned last.
    reservation: Reservation,
    pub(crate) position: ResumePosition,
    /// Whether an event arrived, including events without a message.
    pub(crate) received_event: bool,
}

/// Where a stream can be resumed.
#[derive(Clone, Default)]
pub(crate) struct ResumePosition {
    last_event: Option<String>,
    retry: Option<u64>,
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

    /// The next messages. None if the stream has ended or was interrupted. They must be processed before the next call,
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
            let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
            if is_message && !event.data.is_empty() {
                messages.push(Bytes::from(event.data));
            }
        }
        Ok(Some(messages))
    }

    async fn drain(&mut self) {
        self.reservation.shrink_to(0);
        let end = async { while let Some(Ok(_)) = self.body.next().await {} };
        let _ = timeout(DRAIN, end).await;
    }
}

impl ResumePosition {
    /// Forgets where the stream can be resumed. Returns false if that was unknown.
    pub(crate) fn clear(&mut self) -> bool {
        self.last_event.take().is_some()
    }

    pub(crate) fn last_event(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.last_event.as_deref()?).ok()
    }

    /// The delay before the `without_event`th resumption without an event.
    pub(crate) fn wait(&self, without_event: u32) -> Duration {
        let backoff = RESUME_AFTER.saturating_mul(1 << without_event.saturating_sub(1).min(5)).min(MAX_RESUME_AFTER);
        match self.retry.map(|retry| Duration::from_millis(retry).clamp(MIN_RETRY, MAX_RETRY)) {
            Some(retry) if without_event <= 1 => retry,
            Some(retry) => retry.max(backoff),
            None => backoff,
        }
    }
}
