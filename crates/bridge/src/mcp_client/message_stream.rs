//! [`MessageStream`]: the messages of a response.

use std::{collections::VecDeque, fmt};

use http::StatusCode;
use portcullis_discovery::{BodyStream, OpenResponse, ResponseExcerpt};
use portcullis_mcp::sse::{Decoder, Event};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::{
    error::{McpError, RpcError},
    message_budget::Reservation,
    response::{BodyLimits, MediaType, insufficient_scope, read_body},
};

/// A response whose status was checked.
pub(super) struct Answer {
    messages: Source,
    id: Option<u64>,
    status: StatusCode,
}

/// The source of the messages.
enum Source {
    /// The response itself.
    Response(Box<MessageStream>),
    /// The stream that all calls of an HTTP+SSE session share, for one call at a time.
    Session(OwnedMutexGuard<MessageStream>),
}

impl Source {
    fn stream(&mut self) -> &mut MessageStream {
        match self {
            Self::Response(stream) => stream,
            Self::Session(stream) => stream,
        }
    }
}

/// The messages of a stream, each returned as soon as it is complete. Dropping it closes the stream.
///
/// Events without data, which servers send as keep-alive, are ignored.
pub struct MessageStream {
    body: Option<Box<dyn BodyStream>>,
    decoder: Decoder,
    ready: VecDeque<Value>,
    last_event: Option<String>,
    retry: Option<u64>,
}

/// A message of a stream.
pub(super) enum Step {
    /// The response's result.
    Result(Value),
    /// A message before the response.
    Before(Value),
}

impl MessageStream {
    /// Returns the next message. None when the stream has ended.
    ///
    /// # Errors
    /// When the stream is interrupted, an event is too large, or an event is not JSON. The stream has then ended.
    pub async fn next(&mut self) -> Result<Option<Value>, McpError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            let piece = match body.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return self.fail(McpError::Fetch(error)),
                None => {
                    self.body = None;
                    return Ok(None);
                }
            };
            match self.decoder.push(&piece) {
                Ok(events) => {
                    if let Err(error) = self.receive(events) {
                        return self.fail(error);
                    }
                }
                Err(error) => return self.fail(McpError::InvalidStream(error)),
            }
        }
    }

    fn receive(&mut self, events: Vec<Event>) -> Result<(), McpError> {
        for event in events {
            self.last_event = event.id.or(self.last_event.take());
            self.retry = event.retry.or(self.retry);
            if event.data.is_empty() {
                continue;
            }
            let sent = serde_json::from_str(&event.data).map_err(|_| McpError::InvalidResponse)?;
            self.ready.extend(messages(sent));
        }
        Ok(())
    }

    /// Continues a stream of which the decoder has read these events.
    pub(super) fn resumed_with(
        body: Box<dyn BodyStream>,
        decoder: Decoder,
        events: Vec<Event>,
    ) -> Result<Self, McpError> {
        let mut stream = Self { body: Some(body), decoder, ready: VecDeque::new(), last_event: None, retry: None };
        stream.receive(events)?;
        Ok(stream)
    }

    fn of(body: Box<dyn BodyStream>, limits: &BodyLimits) -> Self {
        let (decoder, ready) = (Decoder::new(limits.max_message), VecDeque::new());
        Self { body: Some(body), decoder, ready, last_event: None, retry: None }
    }

    /// A response that is not a stream.
    fn read_body(sent: Value) -> Self {
        let (decoder, ready) = (Decoder::new(0), messages(sent).into());
        Self { body: None, decoder, ready, last_event: None, retry: None }
    }

    fn fail(&mut self, error: McpError) -> Result<Option<Value>, McpError> {
        self.body = None;
        self.ready.clear();
        Err(error)
    }
}

impl Answer {
    /// The next message up to the response. None when the stream ends before it.
    pub(super) async fn step(&mut self) -> Result<Option<Step>, McpError> {
        let Some(mut message) = self.messages.stream().next().await? else { return Ok(None) };
        if !self.is_response(&message) {
            return Ok(Some(Step::Before(message)));
        }
        if let Some(result) = message.get_mut("result") {
            return Ok(Some(Step::Result(result.take())));
        }
        Err(RpcError::of(&message, self.status).map_or(McpError::InvalidResponse, McpError::Rpc))
    }

    /// Where an ended stream can be resumed, and after how many milliseconds.
    pub(super) fn resumable(&self) -> Option<(&str, Option<u64>)> {
        match &self.messages {
            Source::Response(stream) => Some((stream.last_event.as_deref()?, stream.retry)),
            Source::Session(_) => None,
        }
    }

    /// Continues with the stream that resumes the ended one.
    pub(super) fn resume(&mut self, mut messages: MessageStream) {
        let ended = self.messages.stream();
        messages.last_event = ended.last_event.take();
        messages.retry = ended.retry;
        self.messages = Source::Response(Box::new(messages));
    }

    /// Whether a message is the response. An error can lack the id (JSON-RPC 2.0 section 5).
    fn is_response(&self, message: &Value) -> bool {
        match message.get("id") {
            _ if message.get("method").is_some() => false,
            None | Some(Value::Null) => message.get("error").is_some(),
            Some(id) => id.as_u64() == self.id,
        }
    }

    /// The messages of the response. None if they arrive on the session's stream.
    pub(super) fn into_messages(self) -> Option<MessageStream> {
        match self.messages {
            Source::Response(stream) => Some(*stream),
            Source::Session(_) => None,
        }
    }

    /// A response that arrives on the session's stream.
    pub(super) fn on_session(stream: OwnedMutexGuard<MessageStream>, id: Option<u64>) -> Self {
        Self { messages: Source::Session(stream), id, status: StatusCode::OK }
    }
}

/// One message, or those of a batch, which servers of 2025-03-26 can send.
fn messages(sent: Value) -> Vec<Value> {
    match sent {
        Value::Array(batch) => batch,
        message => vec![message],
    }
}

/// Processes the response to a request.
pub(super) async fn of(response: OpenResponse, id: Option<u64>, limits: &BodyLimits) -> Result<Answer, McpError> {
    let status = response.status;
    if !status.is_success() {
        return Err(refusal(response, limits).await);
    }
    let messages = match MediaType::of(&response.headers) {
        MediaType::EventStream => MessageStream::of(response.body, limits),
        MediaType::Json => {
            let body = read_body(response.body, limits, &mut Reservation::uncounted()).await?;
            MessageStream::read_body(serde_json::from_slice(&body).map_err(|_| McpError::InvalidResponse)?)
        }
        MediaType::Other => return Err(McpError::unexpected_content(response).await),
    };
    Ok(Answer { messages: Source::Response(Box::new(messages)), id, status })
}

/// Processes the response to the opening of a stream.
pub(super) async fn stream(response: OpenResponse, limits: &BodyLimits) -> Result<MessageStream, McpError> {
    if !response.status.is_success() {
        return Err(refusal(response, limits).await);
    }
    match MediaType::of(&response.headers) {
        MediaType::EventStream => Ok(MessageStream::of(response.body, limits)),
        MediaType::Json | MediaType::Other => Err(McpError::unexpected_content(response).await),
    }
}

/// Processes the response to a message without a result.
pub(super) async fn accepted(response: OpenResponse, limits: &BodyLimits) -> Result<(), McpError> {
    if response.status.is_success() { Ok(()) } else { Err(refusal(response, limits).await) }
}

async fn refusal(response: OpenResponse, limits: &BodyLimits) -> McpError {
    let status = response.status;
    if let Some(error) = insufficient_scope(status, &response.headers) {
        return error;
    }
    if MediaType::of(&response.headers) != MediaType::Json {
        return McpError::status(response).await;
    }
    let body = read_body(response.body, limits, &mut Reservation::uncounted()).await.unwrap_or_default();
    let message = serde_json::from_slice::<Value>(&body).ok();
    message.and_then(|message| RpcError::of(&message, status)).map_or_else(
        || McpError::Status { status, response: Box::new(ResponseExcerpt::new(&response.headers, &body)) },
        McpError::Rpc,
    )
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageStream").field("ready", &self.ready.len()).finish_non_exhaustive()
    }
}
