//! [`MessageStream`]: the messages of a response.

use std::{collections::VecDeque, fmt};

use http::StatusCode;
use portcullis_discovery::{BodyStream, OpenResponse};
use portcullis_mcp::sse::{Decoder, Event};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use crate::{
    bridge::Reservation,
    error::{McpError, RpcError},
    response::{Content, Limits, insufficient_scope, read_body},
};

/// The answer to a request, its status judged.
pub(super) struct Answer {
    messages: Source,
    id: Option<u64>,
    status: StatusCode,
}

/// Where the messages come from.
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

/// Messages of a stream, each handed over as soon as it is complete. Dropping it ends the stream.
///
/// Events without data, which servers send to keep a stream alive, are passed over.
pub struct MessageStream {
    body: Option<Box<dyn BodyStream>>,
    decoder: Decoder,
    ready: VecDeque<Value>,
    last_event: Option<String>,
    retry: Option<u64>,
}

/// What came on a stream.
pub(super) enum Step {
    /// The response's result.
    Result(Value),
    /// Anything before it.
    Before(Value),
}

impl MessageStream {
    /// The next message, or none when the stream has ended.
    ///
    /// # Errors
    /// When the exchange breaks off, an event is too large or is no JSON. The stream has then ended.
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

    /// A stream of which the decoder has read these events.
    pub(super) fn resumed_with(
        body: Box<dyn BodyStream>,
        decoder: Decoder,
        events: Vec<Event>,
    ) -> Result<Self, McpError> {
        let mut stream = Self { body: Some(body), decoder, ready: VecDeque::new(), last_event: None, retry: None };
        stream.receive(events)?;
        Ok(stream)
    }

    fn of(body: Box<dyn BodyStream>, limits: &Limits) -> Self {
        let (decoder, ready) = (Decoder::new(limits.max_message), VecDeque::new());
        Self { body: Some(body), decoder, ready, last_event: None, retry: None }
    }

    /// What came as a whole.
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
    /// The next step up to the response, or none when the stream ends before it.
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

    /// Where a stream that has ended can be resumed, and after how many milliseconds.
    pub(super) fn resumable(&self) -> Option<(&str, Option<u64>)> {
        match &self.messages {
            Source::Response(stream) => Some((stream.last_event.as_deref()?, stream.retry)),
            Source::Session(_) => None,
        }
    }

    /// Goes on with the stream that resumes the one that ended.
    pub(super) fn resume(&mut self, mut messages: MessageStream) {
        let ended = self.messages.stream();
        messages.last_event = ended.last_event.take();
        messages.retry = ended.retry;
        self.messages = Source::Response(Box::new(messages));
    }

    /// A response names the request, but an error may come without a name (JSON-RPC 2.0 section 5).
    fn is_response(&self, message: &Value) -> bool {
        match message.get("id") {
            _ if message.get("method").is_some() => false,
            None | Some(Value::Null) => message.get("error").is_some(),
            Some(id) => id.as_u64() == self.id,
        }
    }

    /// The messages of the response. None when they come on the session's stream.
    pub(super) fn into_messages(self) -> Option<MessageStream> {
        match self.messages {
            Source::Response(stream) => Some(*stream),
            Source::Session(_) => None,
        }
    }

    /// The answer to a request that was accepted, which comes on the session's stream.
    pub(super) fn on_session(stream: OwnedMutexGuard<MessageStream>, id: Option<u64>) -> Self {
        Self { messages: Source::Session(stream), id, status: StatusCode::OK }
    }
}

/// One message, or those of a batch, which servers of 2025-03-26 may send.
fn messages(sent: Value) -> Vec<Value> {
    match sent {
        Value::Array(batch) => batch,
        message => vec![message],
    }
}

/// The answer to a request.
pub(super) async fn of(response: OpenResponse, id: Option<u64>, limits: &Limits) -> Result<Answer, McpError> {
    let status = response.status;
    if !status.is_success() {
        return Err(refusal(response, limits).await);
    }
    let messages = match Content::of(&response.headers) {
        Content::Stream => MessageStream::of(response.body, limits),
        Content::Json => {
            let body = read_body(response.body, limits, &mut Reservation::uncounted()).await?;
            MessageStream::read_body(serde_json::from_slice(&body).map_err(|_| McpError::InvalidResponse)?)
        }
        Content::Other => return Err(McpError::InvalidResponse),
    };
    Ok(Answer { messages: Source::Response(Box::new(messages)), id, status })
}

/// The answer to an opened stream.
pub(super) async fn stream(response: OpenResponse, limits: &Limits) -> Result<MessageStream, McpError> {
    if !response.status.is_success() {
        return Err(refusal(response, limits).await);
    }
    match Content::of(&response.headers) {
        Content::Stream => Ok(MessageStream::of(response.body, limits)),
        Content::Json | Content::Other => Err(McpError::InvalidResponse),
    }
}

/// The answer to something that has no result.
pub(super) async fn accepted(response: OpenResponse, limits: &Limits) -> Result<(), McpError> {
    if response.status.is_success() { Ok(()) } else { Err(refusal(response, limits).await) }
}

async fn refusal(response: OpenResponse, limits: &Limits) -> McpError {
    let status = response.status;
    if let Some(error) = insufficient_scope(status, &response.headers) {
        return error;
    }
    let reported = match Content::of(&response.headers) {
        Content::Json => read_body(response.body, limits, &mut Reservation::uncounted()).await.ok(),
        Content::Stream | Content::Other => None,
    };
    reported
        .and_then(|body| serde_json::from_slice::<Value>(&body).ok())
        .and_then(|message| RpcError::of(&message, status))
        .map_or(McpError::Status { status }, McpError::Rpc)
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageStream").field("ready", &self.ready.len()).finish_non_exhaustive()
    }
}
