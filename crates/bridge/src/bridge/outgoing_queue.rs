//! Delivers the client's notifications and responses in order.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::AbortHandle,
};

use crate::bridge::{
    context::{Context, with_advice},
    message::{Message, MessageKind},
    session_requests,
    state::gate::GateGuard,
    transport::modern,
};

/// A notification of the client, or its response to a request of the server. They are delivered in order.
pub(crate) struct OutgoingMessage {
    pub(crate) message: Message,
    pub(crate) protocol: Protocol,
    /// The task of the request that the message cancels. It is aborted after delivery.
    pub(crate) cancelled: Option<AbortHandle>,
    /// Present for `notifications/initialized`. Requests wait until it is dropped, after delivery.
    pub(crate) initialized: Option<GateGuard>,
    /// The message's share of the queue's capacity.
    pub(crate) _capacity: Option<OwnedSemaphorePermit>,
}

/// Limits the bytes of waiting messages, in units of 1 KiB.
pub(crate) struct OutgoingCapacity {
    free: Arc<Semaphore>,
    size: u32,
}

pub(crate) enum Protocol {
    Legacy,
    /// A notification with its method and protocol version.
    Modern {
        method: String,
        version: String,
    },
}

impl OutgoingCapacity {
    pub(crate) fn new(bytes: usize) -> Self {
        let size = units(bytes);
        Self { free: Arc::new(Semaphore::new(size as usize)), size }
    }

    /// Waits until the queue has capacity for a message of this size.
    pub(crate) async fn acquire(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).acquire_many_owned(units(bytes).min(self.size)).await.ok()
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).max(1)
}

/// The maximum number of waiting messages.
pub(crate) const CAPACITY: usize = 64;

/// Delivers the messages one by one.
pub(crate) async fn run(context: Arc<Context>, mut outgoing: mpsc::Receiver<OutgoingMessage>) {
    while let Some(OutgoingMessage { message, protocol, cancelled, initialized, _capacity }) = outgoing.recv().await {
        // A response is sent at once: the server may need it before it answers the handshake.
        let is_notification = matches!(message.kind, MessageKind::Notification { .. });
        if is_notification {
            context.handshake.opened().await;
        }
        // A cancellation and `notifications/initialized` are meaningless in another session.
        let can_repeat = is_notification && cancelled.is_none() && initialized.is_none();
        let sent = match &protocol {
            Protocol::Legacy => session_requests::notify(&context, message.text.clone(), can_repeat).await,
            Protocol::Modern { method, version } => modern::notify(&context, &message, method, version).await,
        };
        if let Err(error) = sent {
            tracing::warn!(reason = error.code(), "a message did not reach the server: {}", with_advice(&error));
        } else if initialized.is_some() {
            context.start_server_stream();
        }
        if let Some(task) = cancelled {
            task.abort();
        }
    }
}
