//! [`Dispatcher`]: sends each message of the client on its way.

use std::sync::Arc;

use portcullis_mcp::ErrorCode;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinHandle, JoinSet},
};

use crate::bridge::{
    context::{Context, Request},
    endpoint::TokenRenewal,
    message::{Message, MessageError, MessageKind, RequestId, error_answer},
    outgoing_queue::{self, OutgoingMessage, Protocol},
    session_requests,
    state::{
        latch::LatchGuard,
        pending_requests::{Purpose, Requester},
        subscriptions::SubscriptionChange,
    },
    stdio::line_reader::Line,
    transport::{legacy, modern},
};

/// Sends each message of the client on its way.
pub(crate) struct Dispatcher {
    context: Arc<Context>,
    /// One task for each request.
    requests: JoinSet<()>,
    outgoing: mpsc::Sender<OutgoingMessage>,
    queue: JoinHandle<()>,
    /// The revision of the client's latest modern request.
    modern: Option<String>,
}

impl Dispatcher {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let (outgoing, waiting) = mpsc::channel(outgoing_queue::CAPACITY);
        let queue = tokio::spawn(outgoing_queue::run(Arc::clone(&context), waiting));
        Self { context, requests: JoinSet::new(), outgoing, queue, modern: None }
    }

    /// Processes a line. It waits only while the outgoing queue or the output is full.
    pub(crate) async fn dispatch(&mut self, line: Line) {
        while self.requests.try_join_next().is_some() {}
        let message = match line {
            Line::Text(text) => Message::parse(text),
            Line::TooLong => Err(MessageError::TooLong),
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!("the client sent an invalid message: {error}");
                return self.context.send_to_client(error_answer(None, error.rpc_code(), &error.to_string(), "")).await;
            }
        };
        match message.kind.clone() {
            MessageKind::Request { id, method } => self.request(message, id, method).await,
            MessageKind::Notification { method } if method == "notifications/cancelled" => self.cancel(message).await,
            MessageKind::Notification { method } => self.notification(message, method).await,
            MessageKind::Response { .. } if self.context.sessions.current().is_some() => {
                self.send(message, None, None).await
            }
            MessageKind::Response { .. } => tracing::warn!("the client sent a response to no request"),
        }
    }

    async fn request(&mut self, message: Message, id: RequestId, method: String) {
        let version = message.params().protocol_version();
        let purpose = match (&version, method.as_str()) {
            (Some(_), "tools/list") => Purpose::ModernToolsList,
            (Some(_), _) => Purpose::Modern,
            (None, "initialize") => Purpose::Initialize { identifier: None, connection: None },
            (None, _) => {
                SubscriptionChange::of(&method, message.params()).map_or(Purpose::Plain, Purpose::ChangeSubscriptions)
            }
        };
        let opens = matches!(purpose, Purpose::Initialize { .. });
        let begun =
            self.context.pending.begin(id.clone(), Requester::Client, purpose, self.context.settings.max_requests);
        let Some(over) = begun else {
            let text = "too many requests are in progress, or the request identifier is in use";
            let answer = error_answer(Some(&id), ErrorCode::InternalError, text, "bridge.busy");
            return self.context.send_to_client(answer).await;
        };
        let closed = opens.then(|| {
            self.context.subscriptions.clear();
            self.context.sessions.begin(message.params().raw().map(serde_json::value::RawValue::get));
            self.context.handshake.close()
        });
        if version.is_some() {
            self.modern.clone_from(&version);
        }
        let context = Arc::clone(&self.context);
        let request = Request { id: id.clone(), method, message, over, token_renewal: TokenRenewal::Allowed };
        let stop = self.requests.spawn(async move {
            let outcome = match (&version, opens) {
                (Some(version), _) => modern::ask(&context, &request, version).await,
                (None, true) => legacy::initialize(&context, &request).await,
                (None, false) => {
                    context.handshake.opened().await;
                    context.initialized.opened().await;
                    session_requests::ask(&context, &request).await
                }
            };
            drop(closed);
            if let Err(error) = outcome {
                context.fail_request(&request.id, &error).await;
            }
        });
        self.context.pending.stoppable(&id, stop);
    }

    /// Cancels a request: the client gets no answer. A modern server is informed by the closed response, a legacy server
    /// by the notification. A handshake is only abandoned, because it cannot be cancelled.
    async fn cancel(&mut self, message: Message) {
        let Some(entry) = message.params().request_id().and_then(|id| self.context.pending.take(&id)) else { return };
        match entry.purpose {
            Purpose::Plain | Purpose::ChangeSubscriptions(_) => self.send(message, entry.stop, None).await,
            Purpose::Initialize { .. } | Purpose::Modern | Purpose::ModernToolsList => {
                if let Some(stop) = entry.stop {
                    stop.abort();
                }
            }
        }
    }

    async fn notification(&mut self, message: Message, method: String) {
        let version = message.params().protocol_version();
        let version = version.or_else(|| self.modern.clone().filter(|_| self.context.sessions.handshake().is_none()));
        if let Some(version) = version {
            return self.deliver(OutgoingMessage::modern(message, method, version)).await;
        }
        let opens = (method == "notifications/initialized").then(|| self.context.initialized.close());
        self.send(message, None, opens).await;
    }

    async fn send(&mut self, message: Message, stops: Option<AbortHandle>, opens: Option<LatchGuard>) {
        self.deliver(OutgoingMessage { message, protocol: Protocol::Legacy, stops, opens }).await;
    }

    async fn deliver(&mut self, message: OutgoingMessage) {
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
