//! [`Context`]: the state of a running bridge.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::{
    endpoint::{Endpoint, TokenRenewal},
    message::{self, Message, RequestId},
    settings::BridgeSettings,
    state::{
        gate::Gate,
        pending_requests::{PendingRequests, Purpose, Requester},
        server_stream_state::ServerStreamState,
        session::Sessions,
        subscriptions::Subscriptions,
    },
    stdio::line_writer::LineSender,
};
use portcullis_mcp_client::transport::{MessageBudget, Reservation, ToolHeaders};

/// The state that all parts of a running bridge share.
pub(crate) struct Context {
    pub(crate) settings: Arc<BridgeSettings>,
    /// Sends HTTP requests.
    pub(crate) endpoint: Endpoint,
    /// The queue of messages to the client.
    pub(crate) output: LineSender,
    /// Limits the memory of the messages in progress.
    pub(crate) budget: Arc<MessageBudget>,
    /// The requests without a response.
    pub(crate) pending: PendingRequests,
    /// The session of the revisions with sessions.
    pub(crate) sessions: Sessions,
    /// The tool arguments that are also sent as headers.
    pub(crate) tools: ToolHeaders,
    /// What is restored in another session.
    pub(crate) subscriptions: Subscriptions,
    /// Closed during a handshake.
    pub(crate) handshake: Gate,
    /// Closed until the server has received `notifications/initialized`.
    pub(crate) initialized: Gate,
    /// Whether the server's own stream is open.
    pub(crate) server_stream: ServerStreamState,
    /// The number of the next request of the bridge itself.
    next_id: AtomicU64,
    open_server_stream: fn(&Arc<Context>),
}

/// A request in progress.
pub(crate) struct Request {
    /// The identifier in the message.
    pub(crate) id: RequestId,
    /// The method in the message.
    pub(crate) method: String,
    /// The message to send, unchanged.
    pub(crate) message: Message,
    /// The message's share of the budget.
    pub(crate) _reservation: Reservation,
    /// Closed when the request is answered, rejected or cancelled.
    pub(crate) pending: watch::Receiver<()>,
    /// What to do when the server rejects the token.
    pub(crate) token_renewal: TokenRenewal,
}

impl Context {
    /// Creates the state of a bridge that has sent nothing. `open_server_stream` starts the task
    /// that reads the server's stream. It is a parameter because that task uses the whole context.
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

    /// Creates a request of the bridge itself, and adds it to the pending requests. The receiver
    /// gets the response; it fails when the request is removed without one.
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
        // The identifier is in use only if the client sends identifiers of this form. The request
        // then fails, because its sender is dropped.
        let pending = self
            .pending
            .insert(id.clone(), requester, purpose, usize::MAX);
        let pending = pending.unwrap_or_else(|_| watch::channel(()).1);
        let message = message::new_request(&id, method, params);
        let _reservation = Reservation::uncounted();
        (
            Request {
                id,
                method: method.to_owned(),
                message,
                _reservation,
                pending,
                token_renewal,
            },
            answer,
        )
    }

    /// Opens the server's own stream in the current session, unless it is open.
    pub(crate) fn start_server_stream(self: &Arc<Self>) {
        (self.open_server_stream)(self);
    }

    /// Sends the client a message. If the client has closed the output, the writer reports that.
    pub(crate) async fn send_to_client(&self, text: Bytes) {
        let _ = self.output.send(text).await;
    }
}
