//! [`Context`]: the state of a running bridge, and the routing of the server's messages.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use portcullis_mcp::ErrorCode;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::{
    bridge::{
        endpoint::{Endpoint, ErrorResponse, TokenRenewal},
        message::{self, Message, MessageKind, RequestId},
        settings::BridgeSettings,
        state::{
            gate::Gate,
            pending_requests::{PendingRequest, PendingRequests, Purpose, Requester},
            server_stream_state::ServerStreamState,
            session::Sessions,
            subscriptions::Subscriptions,
        },
        stdio::line_writer::LineSender,
    },
    error::McpError,
    message_budget::{MessageBudget, Reservation},
    tool_headers::ToolHeaders,
};

/// The state that all parts of a running bridge share.
pub(crate) struct Context {
    pub(crate) settings: Arc<BridgeSettings>,
    pub(crate) endpoint: Endpoint,
    pub(crate) output: LineSender,
    pub(crate) budget: Arc<MessageBudget>,
    pub(crate) pending: PendingRequests,
    pub(crate) sessions: Sessions,
    pub(crate) tools: ToolHeaders,
    pub(crate) subscriptions: Subscriptions,
    /// Closed during a handshake.
    pub(crate) handshake: Gate,
    /// Closed until the server has received `notifications/initialized`.
    pub(crate) initialized: Gate,
    pub(crate) server_stream: ServerStreamState,
    next_id: AtomicU64,
    open_server_stream: fn(&Arc<Context>),
}

/// A request in progress.
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) message: Message,
    /// The message's share of the budget.
    pub(crate) _reservation: Reservation,
    /// Closed when the request is answered, rejected or cancelled.
    pub(crate) pending: watch::Receiver<()>,
    /// What to do when the server rejects the token.
    pub(crate) token_renewal: TokenRenewal,
}

impl Context {
    /// `open_server_stream` starts the task that reads the server's stream. It is a parameter because that task uses
    /// the whole context.
    pub(crate) fn new(
        settings: Arc<BridgeSettings>,
        endpoint: Endpoint,
        output: LineSender,
        open_server_stream: fn(&Arc<Context>),
    ) -> Self {
        // The output has its own capacity of one message.
        let budget = settings.message_budget.saturating_sub(settings.max_message);
        Self {
            budget: MessageBudget::new(budget, settings.max_message),
            sessions: Sessions::new(settings.session_header.clone()),
            settings,
            endpoint,
            output,
            pending: PendingRequests::default(),
            tools: ToolHeaders::default(),
            subscriptions: Subscriptions::default(),
            handshake: Gate::default(),
            initialized: Gate::default(),
            server_stream: ServerStreamState::default(),
            next_id: AtomicU64::new(1),
            open_server_stream,
        }
    }

    /// Forwards data of the server. Returns true if it contains the response to `awaited`.
    ///
    /// # Errors
    /// When the data is not JSON-RPC.
    pub(crate) async fn forward(&self, data: Bytes, awaited: Option<&Request>) -> Result<bool, McpError> {
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
                        let text = message::with_id(&request.id, error);
                        let kind = MessageKind::Response { id: Some(request.id.clone()) };
                        self.resolve(&request.id, Message { text, kind }).await;
                        answered = true;
                    }
                }
                // The client has cancelled the request and expects nothing more about it.
                MessageKind::Request { .. } | MessageKind::Notification { .. } => {
                    self.send_to_client(message.text).await
                }
            }
        }
        Ok(answered)
    }

    /// Delivers the response to a request, once.
    async fn resolve(&self, id: &RequestId, answer: Message) {
        let Some(PendingRequest { requester, purpose, .. }) = self.pending.remove(id) else {
            tracing::debug!("a response to no pending request was dropped");
            return;
        };
        let answer = match purpose {
            Purpose::Initialize { identifier, connection } => {
                let result = answer.result().and_then(|result| serde_json::from_str::<Value>(result.get()).ok());
                if let Some(result) = result {
                    self.sessions.open(identifier, result.get("protocolVersion").and_then(Value::as_str), connection);
                }
                answer
            }
            Purpose::ChangeSubscriptions(change) => {
                if answer.result().is_some() {
                    self.subscriptions.change(change);
                }
                answer
            }
            Purpose::ModernToolsList => self.without_broken_tools(answer),
            Purpose::Plain | Purpose::Modern => answer,
        };
        match requester {
            Requester::Client => {
                self.server_stream.reset_unsolicited_renewals();
                self.send_to_client(answer.text).await;
            }
            Requester::Bridge(waiting) => {
                let _ = waiting.send(answer);
            }
        }
    }

    /// Learns which arguments are also sent as headers. Tools with invalid annotations are removed, as this transport
    /// requires of clients.
    fn without_broken_tools(&self, answer: Message) -> Message {
        let count = |list: &Value| list.get("tools").and_then(Value::as_array).map(Vec::len);
        let Ok(mut whole) = serde_json::from_slice::<Value>(&answer.text) else { return answer };
        let Some(result) = whole.get_mut("result") else { return answer };
        let before = count(result);
        self.tools.learn(result);
        if count(result) == before {
            return answer;
        }
        Message { text: whole.to_string().into(), kind: answer.kind }
    }

    /// Reports to the client that a request failed, unless it has been answered or cancelled.
    pub(crate) async fn fail_request(&self, id: &RequestId, error: &McpError) {
        let Some(entry) = self.pending.remove(id) else { return };
        let text = with_advice(error);
        tracing::warn!(reason = error.code(), "a request has no answer: {text}");
        if matches!(entry.requester, Requester::Client) {
            self.send_to_client(message::error_answer(Some(id), ErrorCode::InternalError, &text, error.code())).await;
        }
    }

    /// Begins a request of the bridge itself.
    pub(crate) fn own_request(
        &self,
        method: &str,
        params: Option<&str>,
        purpose: Purpose,
        token_renewal: TokenRenewal,
    ) -> (Request, oneshot::Receiver<Message>) {
        let id = RequestId::own(self.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        let requester = Requester::Bridge(sender);
        // A client that sends identifiers of this form can only lose its own responses.
        let pending = self.pending.insert(id.clone(), requester, purpose, usize::MAX);
        let pending = pending.unwrap_or_else(|| watch::channel(()).1);
        let message = message::request(&id, method, params);
        let _reservation = Reservation::uncounted();
        (Request { id, method: method.to_owned(), message, _reservation, pending, token_renewal }, answer)
    }

    /// Opens the server's own stream in the current session, unless it is open.
    pub(crate) fn start_server_stream(self: &Arc<Self>) {
        (self.open_server_stream)(self);
    }

    /// Forwards the JSON-RPC error of an error response as the answer to a request.
    ///
    /// # Errors
    /// When the response has no JSON-RPC error, and when there is no response because the session is lost.
    pub(crate) async fn forward_error(
        &self,
        request: &Request,
        response: Option<ErrorResponse>,
    ) -> Result<(), McpError> {
        let Some(response) = response else { return Err(McpError::SessionLost) };
        let Some(error) = &response.error else { return Err(response.into_error()) };
        match Message::parse(message::with_id(&request.id, &error.raw)) {
            Ok(answer) => self.forward(answer.text, Some(request)).await.map(|_| ()),
            Err(_) => Err(McpError::InvalidResponse),
        }
    }

    /// Sends the client a message. If the client has closed the output, the writer reports that.
    pub(crate) async fn send_to_client(&self, text: Bytes) {
        let _ = self.output.send(text).await;
    }
}

/// An error with its causes and advice.
pub(crate) fn with_advice(error: &McpError) -> String {
    let mut text = portcullis_client::error_chain(error);
    if let Some(advice) = portcullis_client::advice(error) {
        text.push_str("; ");
        text.push_str(advice);
    }
    text
}
