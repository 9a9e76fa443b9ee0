//! The routing of the server's messages: forwards them to the client, and applies responses to the
//! state of the bridge.

use bytes::Bytes;
use portcullis_mcp::ErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    context::{Context, Request},
    error_response::ErrorResponse,
    message::{self, Message, MessageKind, RequestId},
    state::pending_requests::{PendingRequest, Purpose, Requester},
};
use portcullis_mcp_client::{McpError, transport::json};

impl Context {
    /// Forwards data of the server: one message, or several in an array. Returns true if it
    /// contains the response to `awaited`.
    ///
    /// A response to no pending request is dropped. Fails with [`McpError::InvalidResponse`] when
    /// the data is not JSON-RPC. Nothing is then forwarded.
    pub(crate) async fn forward(
        &self,
        data: Bytes,
        awaited: Option<&Request>,
    ) -> Result<bool, McpError> {
        let mut answered = false;
        for message in Message::parse_all(data).map_err(|_| McpError::InvalidResponse)? {
            match &message.kind {
                MessageKind::Response { id: Some(id) } => {
                    let id = id.clone();
                    self.resolve(&id, message).await;
                    answered |= awaited.is_some_and(|request| request.id == id);
                }
                // The server could not read the request's id; only this request can be meant.
                MessageKind::Response { id: None } => {
                    if let (Some(request), Some(error)) = (awaited, message.error()) {
                        let text = message::error_with_id(&request.id, error);
                        let kind = MessageKind::Response {
                            id: Some(request.id.clone()),
                        };
                        self.resolve(&request.id, Message { text, kind }).await;
                        answered = true;
                    }
                }
                MessageKind::Request { .. } | MessageKind::Notification { .. } => {
                    self.send_to_client(message.text).await
                }
            }
        }
        Ok(answered)
    }

    /// Forwards the JSON-RPC error of an error response as the answer to a request. Fails when the
    /// response has no valid JSON-RPC error.
    pub(crate) async fn forward_error(
        &self,
        request: &Request,
        response: ErrorResponse,
    ) -> Result<(), McpError> {
        let Some(error) = response.rpc_error() else {
            return Err(response.into_error());
        };
        self.forward(
            message::error_with_id(&request.id, &error.raw),
            Some(request),
        )
        .await
        .map(drop)
    }

    /// Reports to the client that its request failed, unless it has been answered or cancelled. The
    /// failure of a request of the bridge itself is only logged.
    pub(crate) async fn fail_request(&self, id: &RequestId, error: &McpError) {
        let Some(entry) = self.pending.remove(id) else {
            return;
        };
        let text = self.settings.describe(error);
        // Scopes and URLs of a server are not excerpts.
        let text = self.endpoint.sent().redact(&text);
        tracing::warn!(reason = error.code(), "a request has no answer: {text}");
        if matches!(entry.requester, Requester::Client) {
            let answer = message::new_error(
                Some(id),
                ErrorCode::InternalError,
                &text,
                Some(error.code()),
            );
            self.send_to_client(answer).await;
        }
    }

    /// Delivers the response to a request, once.
    async fn resolve(&self, id: &RequestId, answer: Message) {
        let Some(PendingRequest {
            requester, purpose, ..
        }) = self.pending.remove(id)
        else {
            // The request was answered or cancelled before, or was never sent.
            tracing::debug!("a response to no pending request was dropped");
            return;
        };
        let answer = self.apply(id, purpose, answer);
        match requester {
            Requester::Client => {
                // The limit is for renewals without a request of the client.
                self.server_stream.reset_unsolicited_renewals();
                self.send_to_client(answer.text).await;
            }
            // The receiver is gone if its task has ended.
            Requester::Bridge(waiting) => drop(waiting.send(answer)),
        }
    }

    /// Changes the state of the bridge as a response requires, and returns the response for the
    /// requester.
    fn apply(&self, id: &RequestId, purpose: Purpose, answer: Message) -> Message {
        match purpose {
            Purpose::Initialize {
                identifier,
                connection,
            } => {
                if let Some(result) = answer.result() {
                    let result = json::object::<InitializeResult<'_>>(result);
                    let version = result
                        .and_then(|result| json::string(result.protocol_version?, MAX_VERSION));
                    self.sessions
                        .open(identifier, version.as_deref(), connection);
                }
                answer
            }
            Purpose::ChangeSubscriptions(change) => {
                if answer.result().is_some() {
                    self.subscriptions.change(change);
                }
                answer
            }
            Purpose::ModernToolsList => self.learn_tools(id, answer),
            Purpose::Plain | Purpose::Modern => answer,
        }
    }

    /// Learns which arguments are also sent as headers. Tools with invalid annotations are removed,
    /// as this transport requires of clients. A list that cannot be filtered is replaced by an
    /// error.
    fn learn_tools(&self, id: &RequestId, answer: Message) -> Message {
        let Some(result) = answer.result() else {
            return answer;
        };
        let mut text = message::result_start(id);
        let text = match self.tools.learn_and_filter(result, &mut text) {
            Ok(false) => return answer,
            Ok(true) => {
                text.push(message::RESULT_END);
                text.into()
            }
            Err(error) => {
                tracing::warn!(
                    reason = error.code(),
                    "a list of tools was dropped: {error}"
                );
                let text = self.settings.describe(&error);
                message::new_error(
                    Some(id),
                    ErrorCode::InternalError,
                    &text,
                    Some(error.code()),
                )
            }
        };
        Message {
            text,
            kind: answer.kind,
        }
    }
}

/// The maximum length of a protocol version, in bytes of JSON text. It is sent in a header of every
/// request.
const MAX_VERSION: usize = 256;

/// The member of the result of `initialize` that the bridge needs.
#[derive(Deserialize)]
struct InitializeResult<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    protocol_version: Option<&'a RawValue>,
}
