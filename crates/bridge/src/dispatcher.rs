//! [`Dispatcher`]: dispatches the client's messages.

use std::sync::Arc;

use portcullis_mcp::ErrorCode;
use tokio::{
    sync::{Semaphore, mpsc},
    task::{AbortHandle, JoinHandle, JoinSet},
};

use crate::{
    context::{Context, Request},
    endpoint::TokenRenewal,
    error::MessageTooLarge,
    message::{Message, MessageKind, RequestId, new_error},
    outgoing_queue::{self, OutgoingCapacity, OutgoingMessage, Protocol},
    session_requests,
    state::{
        gate::GateGuard,
        pending_requests::{Purpose, Requester},
        subscriptions::SubscriptionChange,
    },
    stdio::{line_reader::Line, oversized_line::OversizedMessage},
    transport::{legacy, modern},
};
use portcullis_mcp_client::McpError;

/// Dispatches the client's messages to the endpoint.
pub(crate) struct Dispatcher {
    context: Arc<Context>,
    /// One task for each request.
    requests: JoinSet<()>,
    /// Limits the requests that are sent at the same time; others wait.
    slots: Arc<Semaphore>,
    /// The queue of notifications and responses.
    outgoing: mpsc::Sender<OutgoingMessage>,
    outgoing_capacity: OutgoingCapacity,
    /// The task that delivers the messages of the queue.
    queue: JoinHandle<()>,
    /// The protocol version of the client's latest modern request.
    latest_modern_version: Option<String>,
}

impl Dispatcher {
    /// Starts the task of the queue. Dropping the dispatcher aborts it, and the tasks of the
    /// requests.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let (outgoing, waiting) = mpsc::channel(outgoing_queue::CAPACITY);
        let queue = tokio::spawn(outgoing_queue::run(Arc::clone(&context), waiting));
        let slots = Arc::new(Semaphore::new(
            context.settings.max_requests.min(Semaphore::MAX_PERMITS),
        ));
        let outgoing_capacity = OutgoingCapacity::new(context.settings.max_message);
        Self {
            context,
            requests: JoinSet::new(),
            slots,
            outgoing,
            outgoing_capacity,
            queue,
            latest_modern_version: None,
        }
    }

    /// Processes a line. It waits only while the outgoing queue or the output is full.
    pub(crate) async fn dispatch(&mut self, line: Line) {
        while self.requests.try_join_next().is_some() {}
        let message = match line {
            Line::Text(text) => Message::parse(text),
            Line::TooLong(message) => return self.reject_oversized(message).await,
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!("the client sent an invalid message: {error}");
                return self
                    .context
                    .send_to_client(new_error(None, error.rpc_code(), &error.to_string(), None))
                    .await;
            }
        };
        match message.kind.clone() {
            MessageKind::Request { id, method } => self.request(message, id, method).await,
            MessageKind::Notification { method } if method == "notifications/cancelled" => {
                self.cancel(message).await
            }
            MessageKind::Notification { method } => self.notification(message, method).await,
            MessageKind::Response { .. } if self.context.sessions.current().is_some() => {
                self.send(message, None, None).await
            }
            MessageKind::Response { .. } => {
                tracing::warn!("the client sent a response to no request")
            }
        }
    }

    /// Sends a request in a task of its own, if there is capacity for it.
    async fn request(&mut self, message: Message, id: RequestId, method: String) {
        let version = message.params().protocol_version();
        let purpose = purpose_of(&message, &method, version.is_some());
        let is_handshake = matches!(purpose, Purpose::Initialize { .. });
        let Some(reservation) = self.context.budget.try_reserve(message.text.len()) else {
            return self
                .reject(
                    &id,
                    "the messages in progress hold all the memory that is allowed for them",
                )
                .await;
        };
        let settings = &self.context.settings;
        let max = settings
            .max_requests
            .saturating_add(settings.max_waiting_requests);
        let pending = match self
            .context
            .pending
            .insert(id.clone(), Requester::Client, purpose, max)
        {
            Ok(pending) => pending,
            Err(error) => return self.reject(&id, &error.to_string()).await,
        };
        // Other requests wait until the handshake ends.
        let handshake = is_handshake.then(|| {
            self.context.subscriptions.clear();
            self.context
                .sessions
                .begin(message.params().raw().map(serde_json::value::RawValue::get));
            self.context.handshake.close()
        });
        if version.is_some() {
            self.latest_modern_version.clone_from(&version);
        }
        let context = Arc::clone(&self.context);
        let slots = Arc::clone(&self.slots);
        let token_renewal = TokenRenewal::Allowed;
        let request = Request {
            id: id.clone(),
            method,
            message,
            _reservation: reservation,
            pending,
            token_renewal,
        };
        let destination = match version {
            Some(version) => Destination::Modern { version },
            None if is_handshake => Destination::Handshake,
            None => Destination::Session,
        };
        let task = self.requests.spawn(async move {
            // A handshake must not wait for a slot, because the holders of the slots can wait for
            // the handshake. Others hold theirs until an error is written, too, so that failing
            // requests are also limited.
            let _slot = if is_handshake {
                None
            } else {
                slots.acquire_owned().await.ok()
            };
            let result = send_request(&context, &request, destination).await;
            drop(handshake);
            if let Err(error) = result {
                context.fail_request(&request.id, &error).await;
            }
        });
        self.context.pending.set_task(&id, task);
    }

    /// Answers a request with an error instead of sending it.
    async fn reject(&self, id: &RequestId, text: &str) {
        let answer = new_error(
            Some(id),
            ErrorCode::InternalError,
            text,
            Some("bridge.busy"),
        );
        self.context.send_to_client(answer).await;
    }

    /// Rejects a message that is too large: a request with an error to the client, a response with
    /// an error to the server, which waits for it.
    async fn reject_oversized(&mut self, message: OversizedMessage) {
        let settings = &self.context.settings;
        let text = settings.describe(&MessageTooLarge {
            limit: settings.max_message,
        });
        let error = |id| {
            new_error(
                id,
                ErrorCode::InvalidRequest,
                &text,
                Some("bridge.too_large"),
            )
        };
        tracing::warn!("the client sent a message that is too large");
        match message {
            OversizedMessage::Request(id) => self.context.send_to_client(error(Some(&id))).await,
            OversizedMessage::Response(id) => match Message::parse(error(Some(&id))) {
                Ok(response) if self.context.sessions.current().is_some() => {
                    self.send(response, None, None).await
                }
                _ => {}
            },
            OversizedMessage::Other => self.context.send_to_client(error(None)).await,
        }
    }

    /// Cancels a request: the client gets no answer. A modern server is informed by the closed
    /// response, a legacy server by the notification. A handshake is only abandoned, because it
    /// cannot be cancelled, and so is a request that still waits.
    async fn cancel(&mut self, message: Message) {
        let Some(entry) = message
            .params()
            .request_id()
            .and_then(|id| self.context.pending.remove(&id))
        else {
            return;
        };
        match entry.purpose {
            Purpose::Plain | Purpose::ChangeSubscriptions(_) if entry.is_sent => {
                self.send(message, entry.task, None).await
            }
            Purpose::Plain
            | Purpose::ChangeSubscriptions(_)
            | Purpose::Initialize { .. }
            | Purpose::Modern
            | Purpose::ModernToolsList => {
                if let Some(task) = entry.task {
                    task.abort();
                }
            }
        }
    }

    /// Queues a notification: in the client's modern revision if it names one, or has used one and
    /// has no session.
    async fn notification(&mut self, message: Message, method: String) {
        let version = message.params().protocol_version();
        let version = version.or_else(|| {
            self.latest_modern_version
                .clone()
                .filter(|_| self.context.sessions.handshake().is_none())
        });
        if let Some(version) = version {
            return self
                .enqueue(message, Protocol::Modern { method, version }, None, None)
                .await;
        }
        let initialized =
            (method == "notifications/initialized").then(|| self.context.initialized.close());
        self.send(message, None, initialized).await;
    }

    /// Queues a message of the revisions with sessions.
    async fn send(
        &mut self,
        message: Message,
        cancelled: Option<AbortHandle>,
        initialized: Option<GateGuard>,
    ) {
        self.enqueue(message, Protocol::Legacy, cancelled, initialized)
            .await;
    }

    async fn enqueue(
        &mut self,
        message: Message,
        protocol: Protocol,
        cancelled: Option<AbortHandle>,
        initialized: Option<GateGuard>,
    ) {
        let capacity = self.outgoing_capacity.acquire(message.text.len()).await;
        let message = OutgoingMessage {
            message,
            protocol,
            cancelled,
            initialized,
            _capacity: capacity,
        };
        // The queue ends with the dispatcher.
        let _ = self.outgoing.send(message).await;
    }

    /// Waits until all messages are delivered and all requests are answered.
    pub(crate) async fn finish(&mut self) {
        while self.requests.join_next().await.is_some() {}
        let (outgoing, _) = mpsc::channel(1);
        self.outgoing = outgoing;
        let _ = (&mut self.queue).await;
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.queue.abort();
    }
}

/// How a request is sent.
enum Destination {
    /// Without a session, in a protocol version without sessions.
    Modern { version: String },
    /// To open a session.
    Handshake,
    /// In the session.
    Session,
}

/// Sends a request and forwards the response. In a session, it first waits until the handshake has
/// finished.
async fn send_request(
    context: &Arc<Context>,
    request: &Request,
    destination: Destination,
) -> Result<(), McpError> {
    if let Destination::Session = destination {
        context.handshake.opened().await;
        context.initialized.opened().await;
    }
    context.pending.mark_sent(&request.id);
    match destination {
        Destination::Modern { version } => modern::send_request(context, request, &version).await,
        Destination::Handshake => legacy::initialize(context, request).await,
        Destination::Session => session_requests::send_request(context, request).await,
    }
}

/// Returns what the response to a request of the client means.
fn purpose_of(message: &Message, method: &str, is_modern: bool) -> Purpose {
    match method {
        "tools/list" if is_modern => Purpose::ModernToolsList,
        _ if is_modern => Purpose::Modern,
        "initialize" => Purpose::Initialize {
            identifier: None,
            connection: None,
        },
        _ => SubscriptionChange::of(method, message.params())
            .map_or(Purpose::Plain, Purpose::ChangeSubscriptions),
    }
}
