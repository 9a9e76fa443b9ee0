//! Delivers the client's notifications and responses in order.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::AbortHandle,
};

use crate::{
    context::Context,
    message::{Message, MessageKind},
    session_requests::{self, AfterRenewal},
    state::gate::GateGuard,
    transport::modern,
};

/// A notification of the client, or its response to a request of the server. They are delivered in
/// order.
pub(crate) struct OutgoingMessage {
    /// The message, unchanged.
    pub(crate) message: Message,
    /// How it is sent.
    pub(crate) protocol: Protocol,
    /// The task of the request that the message cancels. It is aborted after delivery.
    pub(crate) cancelled: Option<AbortHandle>,
    /// Present for `notifications/initialized`. Requests wait until it is dropped, after delivery.
    pub(crate) initialized: Option<GateGuard>,
    /// The message's share of the queue's capacity.
    pub(crate) _capacity: Option<OwnedSemaphorePermit>,
}

/// How a message is sent.
pub(crate) enum Protocol {
    /// In the session of a revision with sessions.
    Legacy,
    /// As a notification of 2026-07-28, with headers that repeat its method and version.
    Modern { method: String, version: String },
}

/// Limits the bytes of waiting messages, in units of 1 KiB.
pub(crate) struct OutgoingCapacity {
    free: Arc<Semaphore>,
    total: u32,
}

impl OutgoingCapacity {
    /// Creates the capacity of an empty queue.
    pub(crate) fn new(bytes: usize) -> Self {
        let total = units(bytes);
        Self {
            free: Arc::new(Semaphore::new(total as usize)),
            total,
        }
    }

    /// Waits until the queue has capacity for a message of this size. A larger one than the queue
    /// waits until the queue is empty. The capacity is free again when the result is dropped.
    pub(crate) async fn acquire(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free)
            .acquire_many_owned(units(bytes).min(self.total))
            .await
            .ok()
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024))
        .unwrap_or(u32::MAX)
        .max(1)
}

/// The maximum number of waiting messages.
pub(crate) const CAPACITY: usize = 64;

/// Delivers the messages one by one until the sender is dropped. A failure is only logged, because
/// these messages have no response.
pub(crate) async fn run(context: Arc<Context>, mut outgoing: mpsc::Receiver<OutgoingMessage>) {
    while let Some(OutgoingMessage {
        message,
        protocol,
        cancelled,
        initialized,
        _capacity,
    }) = outgoing.recv().await
    {
        // A response is sent at once: the server may need it before it answers the handshake.
        let is_notification = matches!(message.kind, MessageKind::Notification { .. });
        if is_notification {
            context.handshake.opened().await;
        }
        // A cancellation and `notifications/initialized` are meaningless in another session.
        let is_repeatable = is_notification && cancelled.is_none() && initialized.is_none();
        let after_renewal = if is_repeatable {
            AfterRenewal::SendAgain
        } else {
            AfterRenewal::Drop
        };
        let sent = match &protocol {
            Protocol::Legacy => {
                session_requests::notify(&context, message.text.clone(), after_renewal).await
            }
            Protocol::Modern { method, version } => {
                modern::notify(&context, &message, method, version).await
            }
        };
        if let Err(error) = sent {
            let text = context.settings.describe(&error);
            tracing::warn!(
                reason = error.code(),
                "a message did not reach the server: {text}"
            );
        } else if initialized.is_some() {
            context.start_server_stream();
        }
        if let Some(task) = cancelled {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_capacity() {
        let capacity = OutgoingCapacity::new(4096);
        let fits = async |bytes| {
            timeout(Duration::from_secs(1), capacity.acquire(bytes))
                .await
                .ok()
                .flatten()
        };
        let first = fits(2049).await.unwrap();
        assert!(fits(1025).await.is_none(), "a started KiB is counted");
        let second = fits(0).await.unwrap();
        assert!(fits(1).await.is_none(), "an empty message is counted, too");
        drop(first);
        assert!(fits(1025).await.is_some());
        assert!(fits(1 << 40).await.is_none());
        drop(second);
        assert!(fits(1 << 40).await.is_some());
    }
}
