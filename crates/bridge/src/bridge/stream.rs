use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderValue;
use portcullis_discovery::{BodyStream, OpenResponse};
use portcullis_mcp::{header as names, sse::Decoder};
use tokio::time::{sleep, timeout};

use super::{
    hub::{Hub, Request},
    session::Session,
    wire::Refusal,
};
use crate::{McpError, mcp::response::Content};

/// How often a stream is resumed on which nothing came.
const MAX_RESUMES: u32 = 8;
/// How long to wait before that, where the server does not say.
const RESUME_AFTER: Duration = Duration::from_secs(1);
const MAX_RESUME_AFTER: Duration = Duration::from_secs(30);
/// A server may want more time than that, and gets up to this.
const MAX_RETRY: Duration = Duration::from_secs(60 * 60);
/// A server may want none, and has to wait this long; twice as long after each stream that brought no message, up to the
/// other.
const MIN_RETRY: Duration = Duration::from_millis(20);
const MIN_RETRY_AT_LAST: Duration = Duration::from_secs(1);
/// How long the identifier of an event may be to resume behind: it has to fit into a header.
const MAX_EVENT_ID: usize = 4096;
/// How long the end of a stream is waited for that has brought its answer, so that its connection can be used again.
const DRAIN: Duration = Duration::from_secs(1);

/// Passes on the answer to a request, and what comes before it.
///
/// A stream that breaks off is resumed, where it is one of a legacy session and has an event to resume behind.
pub(super) async fn follow(
    hub: &Arc<Hub>,
    request: &Request,
    response: OpenResponse,
    session: Option<&Session>,
) -> Result<(), McpError> {
    match Content::of(&response.headers) {
        Content::Json => {
            let body = hub.wire.read(response.body).await?;
            if hub.pass(body.into(), Some(request)).await? { Ok(()) } else { Err(McpError::InvalidResponse) }
        }
        Content::Stream => read(hub, request, response.body, session).await,
        Content::Other => Err(McpError::InvalidResponse),
    }
}

async fn read(
    hub: &Arc<Hub>,
    request: &Request,
    body: Box<dyn BodyStream>,
    session: Option<&Session>,
) -> Result<(), McpError> {
    let (mut events, mut tries) = (Events::new(body, hub.settings.max_message), Tries::default());
    loop {
        match events.next().await? {
            Some(batch) => {
                tries.brought(&mut events, &batch);
                let mut answered = false;
                for data in batch {
                    answered = answered || hub.pass(data, Some(request)).await?;
                }
                if answered {
                    events.drain().await;
                    return Ok(());
                }
            }
            None => {
                let Some(session) = session else { return Err(McpError::StreamEnded) };
                events.body = resume(hub, request, session, &events.position, &mut tries).await?;
                events.decoder = Decoder::new(hub.settings.max_message);
            }
        }
    }
}

/// The rest of a legacy stream, after the time that its server wants to pass.
async fn resume(
    hub: &Arc<Hub>,
    request: &Request,
    session: &Session,
    position: &Position,
    tries: &mut Tries,
) -> Result<Box<dyn BodyStream>, McpError> {
    let Some(last_event) = position.last_event() else { return Err(McpError::StreamEnded) };
    loop {
        let wait = tries.again(position);
        if tries.fruitless > MAX_RESUMES {
            return Err(McpError::StreamEnded);
        }
        sleep(wait).await;
        let now = hub.sessions.current().filter(|now| now.generation == session.generation);
        let Some(now) = now else { return Err(McpError::SessionLost) };
        let mut headers = hub.sessions.headers(Some(&now));
        headers.insert(names::LAST_EVENT_ID, last_event.clone());
        match hub.wire.send(hub.wire.get(headers), request.refused).await {
            Ok(answer) if answer.status.is_success() && Content::of(&answer.headers) == Content::Stream => {
                return Ok(answer.body);
            }
            Ok(answer) if answer.status.is_server_error() => {}
            Ok(answer) => {
                let refusal = Refusal::read(&hub.wire, answer).await;
                return Err(if refusal.is_of_session() { McpError::SessionLost } else { McpError::StreamEnded });
            }
            Err(McpError::Fetch(_)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// How often a stream was asked for again.
#[derive(Default)]
pub(super) struct Tries {
    /// Since an event came, one without a message included: a server may let its client come back for as long as it works.
    fruitless: u32,
    /// Since a message came.
    idle: u32,
}

impl Tries {
    /// Takes note of what came.
    pub(super) fn brought(&mut self, events: &mut Events, messages: &[Bytes]) {
        if std::mem::take(&mut events.heard) {
            self.fruitless = 0;
        }
        if !messages.is_empty() {
            self.idle = 0;
        }
    }

    /// Counts another try, and gives the time to wait before it.
    pub(super) fn again(&mut self, position: &Position) -> Duration {
        self.fruitless = self.fruitless.saturating_add(1);
        let least = MIN_RETRY.saturating_mul(1 << self.idle.min(6)).min(MIN_RETRY_AT_LAST);
        self.idle = self.idle.saturating_add(1);
        position.wait(self.fruitless).max(least)
    }
}

/// The messages of a stream, and where it can be resumed.
pub(super) struct Events {
    body: Box<dyn BodyStream>,
    decoder: Decoder,
    pub(super) position: Position,
    /// Whether any event came, one without a message included.
    pub(super) heard: bool,
}

/// Where a stream can be resumed.
#[derive(Clone, Default)]
pub(super) struct Position {
    last_event: Option<String>,
    retry: Option<u64>,
}

impl Events {
    pub(super) fn new(body: Box<dyn BodyStream>, max_message: usize) -> Self {
        Self::begun(body, Decoder::new(max_message))
    }

    /// A stream of which the decoder has read something.
    pub(super) fn begun(body: Box<dyn BodyStream>, decoder: Decoder) -> Self {
        Self { body, decoder, position: Position::default(), heard: false }
    }

    /// The messages that came together, or none when the stream has ended or broken off.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Bytes>>, McpError> {
        let Some(Ok(piece)) = self.body.next().await else { return Ok(None) };
        let events = self.decoder.push(&piece).map_err(McpError::InvalidStream)?;
        let mut messages = Vec::with_capacity(events.len());
        for event in events {
            self.heard = true;
            // An empty identifier takes back the one before (HTML section 9.2.6).
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
        let end = async { while let Some(Ok(_)) = self.body.next().await {} };
        let _ = timeout(DRAIN, end).await;
    }
}

impl Position {
    /// Forgets where the stream can be resumed. False when that was not known.
    pub(super) fn begin_anew(&mut self) -> bool {
        self.last_event.take().is_some()
    }

    pub(super) fn last_event(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.last_event.as_deref()?).ok()
    }

    /// How long to wait before the stream is asked for again, for the `fruitless`th time.
    pub(super) fn wait(&self, fruitless: u32) -> Duration {
        let backoff = RESUME_AFTER.saturating_mul(1 << fruitless.saturating_sub(1).min(5)).min(MAX_RESUME_AFTER);
        match self.retry.map(|retry| Duration::from_millis(retry).clamp(MIN_RETRY, MAX_RETRY)) {
            Some(retry) if fruitless <= 1 => retry,
            Some(retry) => retry.max(backoff),
            None => backoff,
        }
    }
}
