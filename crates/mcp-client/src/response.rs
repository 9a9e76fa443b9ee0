//! The responses to the messages of a client.

use bytes::Bytes;
use http::StatusCode;
use portcullis_discovery::{OpenResponse, ResponseExcerpt, SentSecrets};
use serde_json::value::RawValue;
use tokio::sync::OwnedMutexGuard;

use crate::{
    error::{McpError, RpcError},
    message_head::MessageHead,
    message_stream::MessageStream,
    retry_after::RetryAfter,
    transport::{
        BodyLimits, MAX_ERROR_SIZE, MediaType, Reservation, insufficient_scope, read_body,
    },
};

/// The response to a request, whose status was checked.
pub(super) struct Answer {
    messages: Source,
    /// The identifier of the request.
    id: Option<u64>,
    status: StatusCode,
    /// What errors must not repeat.
    sent: SentSecrets,
    /// The number of the legacy session in which the request was sent.
    pub(super) generation: Option<u64>,
}

/// The stream with the messages of a response.
enum Source {
    /// The body of the HTTP response.
    Body(Box<MessageStream>),
    /// The stream that all calls of an HTTP+SSE session share, for one call at a time.
    Session(OwnedMutexGuard<MessageStream>),
}

/// A message of a response.
pub(super) enum AnswerMessage {
    /// The result, after which nothing follows.
    Result(Box<RawValue>),
    /// The text of a notification or a request before the result.
    BeforeResult(Bytes),
}

impl Answer {
    /// Creates the answer whose messages arrive on the stream of an HTTP+SSE session.
    pub(super) fn on_session(
        stream: OwnedMutexGuard<MessageStream>,
        id: Option<u64>,
        sent: SentSecrets,
    ) -> Self {
        Self {
            messages: Source::Session(stream),
            id,
            status: StatusCode::OK,
            sent,
            generation: None,
        }
    }

    /// Sets the number of the legacy session in which the request was sent. Without it, the stream
    /// is not resumed.
    pub(super) fn in_session(self, generation: Option<u64>) -> Self {
        Self { generation, ..self }
    }

    /// Reads the response to a request. Fails when the server rejects the request, or the response
    /// is not valid. The messages of a stream are not read yet.
    pub(super) async fn read(
        response: OpenResponse,
        id: Option<u64>,
        limits: &BodyLimits,
    ) -> Result<Self, McpError> {
        let response = success(response, limits).await?;
        let (status, sent) = (response.status, response.sent.clone());
        let messages = match MediaType::of(&response.headers) {
            MediaType::EventStream => MessageStream::new(response.body, limits.max_message),
            MediaType::Json => {
                let body = read_body(response.body, limits, &mut Reservation::uncounted()).await?;
                MessageStream::of_json(body.into())?
            }
            MediaType::Other => return Err(McpError::unexpected_content(response).await),
        };
        Ok(Self {
            messages: Source::Body(Box::new(messages)),
            id,
            status,
            sent,
            generation: None,
        })
    }

    /// Returns the next message up to the result. `None` when the stream ends before it. Fails with
    /// [`McpError::Rpc`] if the server reports an error, [`McpError::InvalidResponse`] if a
    /// response has neither result nor error, and as [`MessageStream::next`].
    pub(super) async fn next(&mut self) -> Result<Option<AnswerMessage>, McpError> {
        let stream = match &mut self.messages {
            Source::Body(stream) => stream,
            Source::Session(stream) => &mut **stream,
        };
        let Some(text) = stream.next_text().await? else {
            return Ok(None);
        };
        let head = MessageHead::parse(&text)?;
        if !head.is_response_to(self.id) {
            return Ok(Some(AnswerMessage::BeforeResult(text)));
        }
        if let Some(result) = head.result {
            return Ok(Some(AnswerMessage::Result(result.to_owned())));
        }
        let error = head
            .error
            .and_then(|error| RpcError::parse(error, self.status, &self.sent));
        Err(error.map_or(McpError::InvalidResponse, |error| {
            McpError::Rpc(Box::new(error))
        }))
    }

    /// The stream of this response alone, which can be resumed. `None` if the messages arrive on
    /// the session's stream.
    pub(super) fn own_stream(&mut self) -> Option<&mut MessageStream> {
        match &mut self.messages {
            Source::Body(stream) => Some(stream),
            Source::Session(_) => None,
        }
    }

    /// All messages of the response, including the result. `None` if they arrive on the session's
    /// stream.
    pub(super) fn into_messages(self) -> Option<MessageStream> {
        match self.messages {
            Source::Body(stream) => Some(*stream),
            Source::Session(_) => None,
        }
    }
}

/// Returns the stream of a response that must be an event stream. Fails when the server rejects the
/// request, or responds with another media type.
pub(super) async fn event_stream(
    response: OpenResponse,
    limits: &BodyLimits,
) -> Result<MessageStream, McpError> {
    let response = success(response, limits).await?;
    match MediaType::of(&response.headers) {
        MediaType::EventStream => Ok(MessageStream::new(response.body, limits.max_message)),
        MediaType::Json | MediaType::Other => Err(McpError::unexpected_content(response).await),
    }
}

/// Returns a response whose status is a success. The error is the missing scopes, the JSON-RPC
/// error of the response, or its status with an excerpt. A body that cannot be read counts as
/// empty, because the status is an error already.
pub(super) async fn success(
    response: OpenResponse,
    limits: &BodyLimits,
) -> Result<OpenResponse, McpError> {
    let status = response.status;
    if status.is_success() {
        return Ok(response);
    }
    if let Some(error) = insufficient_scope(status, &response.headers) {
        return Err(error);
    }
    if MediaType::of(&response.headers) != MediaType::Json {
        return Err(McpError::status(response).await);
    }
    let OpenResponse {
        headers,
        body,
        sent,
        ..
    } = response;
    let limits = BodyLimits {
        max_message: limits.max_message.min(MAX_ERROR_SIZE),
        ..*limits
    };
    let body = read_body(body, &limits, &mut Reservation::uncounted())
        .await
        .unwrap_or_default();
    let error = MessageHead::parse(&body)
        .ok()
        .and_then(|head| RpcError::parse(head.error?, status, &sent));
    let retry_after = RetryAfter::of(&headers);
    Err(match error {
        Some(error) => McpError::Rpc(Box::new(RpcError {
            retry_after,
            ..error
        })),
        None => {
            let response = Box::new(ResponseExcerpt::new(&headers, &body, &sent));
            McpError::Status {
                status,
                response,
                retry_after,
            }
        }
    })
}
