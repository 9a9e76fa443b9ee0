//! Delivers the messages that have no answer, in order: notifications and responses.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::AbortHandle,
};

use crate::bridge::{
    context::{Context, error_chain},
    message::{Message, MessageKind},
    session_requests,
    state::latch::LatchGuard,
    transport::modern,
};

/// What goes to the server and is not answered, in the order in which it came: notifications, and answers to what the
/// server asked.
pub(crate) struct OutgoingMessage {
    pub(crate) message: Message,
    pub(crate) protocol: Protocol,
    /// What is stopped once the server knows.
    pub(crate) stops: Option<AbortHandle>,
    /// What may go on once the server knows.
    pub(crate) opens: Option<LatchGuard>,
    /// What the message takes of the queue's capacity.
    pub(crate) _capacity: Option<OwnedSemaphorePermit>,
}

/// The bytes that the waiting messages may hold together, in units of 1 KiB.
pub(crate) struct OutgoingCapacity {
    free: Arc<Semaphore>,
    size: u32,
}

pub(crate) enum Protocol {
    Legacy,
    /// A notification of this method, of this revision.
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

    /// Waits until a message of this size may wait in the queue.
    pub(crate) async fn acquire(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).acquire_many_owned(units(bytes).min(self.size)).await.ok()
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).max(1)
}

/// How many outgoing may wait.
pub(crate) const CAPACITY: usize = 64;

/// Delivers outgoing one by one.
pub(crate) async fn run(context: Arc<Context>, mut outgoing: mpsc::Receiver<OutgoingMessage>) {
    while let Some(OutgoingMessage { message, protocol, stops, opens, _capacity }) = outgoing.recv().await {
        // An answer goes out at once: the server may want it before it answers the handshake.
        let is_notification = matches!(message.kind, MessageKind::Notification { .. });
        if is_notification {
            context.handshake.opened().await;
        }
        // Another session has its own requests, and its own beginning.
        let again = is_notification && stops.is_none() && opens.is_none();
        let sent = match &protocol {
            Protocol::Legacy => session_requests::notify(&context, message.text.clone(), again).await,
            Protocol::Modern { method, version } => modern::notify(&context, &message, method, version).await,
        };
        if let Err(error) = sent {
            tracing::warn!(reason = error.code(), "a message did not reach the server: {}", error_chain(&error));
        } else if opens.is_some() {
            context.start_server_stream();
        }
        if let Some(stop) = stops {
            stop.abort();
        }
    }
}
