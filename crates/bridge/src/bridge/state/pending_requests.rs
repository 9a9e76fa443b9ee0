//! [`PendingRequests`]: the requests without a response.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::HeaderValue;
use tokio::{
    sync::{oneshot, watch},
    task::AbortHandle,
};

use crate::bridge::{
    message::{Message, RequestId},
    state::{sse_connection::SseConnection, subscriptions::SubscriptionChange},
};

/// The requests in progress, by identifier. A request that is not here has been answered, rejected or cancelled; later
/// messages about it are dropped.
#[derive(Default)]
pub(crate) struct PendingRequests(Mutex<HashMap<RequestId, PendingRequest>>);

/// A request in progress.
pub(crate) struct PendingRequest {
    pub(crate) requester: Requester,
    pub(crate) purpose: Purpose,
    /// Whether it was sent to the server. Until then, the server needs no cancellation.
    pub(crate) is_sent: bool,
    /// Aborts its task.
    pub(crate) task: Option<AbortHandle>,
    /// Dropped with this value, which tells the receivers that the request is no longer pending.
    _pending: watch::Sender<()>,
}

/// The receiver of the response.
pub(crate) enum Requester {
    Client,
    Bridge(oneshot::Sender<Message>),
}

/// What the response means to the bridge.
pub(crate) enum Purpose {
    /// Nothing.
    Plain,
    /// It changes the session's subscriptions or log level.
    ChangeSubscriptions(SubscriptionChange),
    /// It opens a session, under this identifier or over this connection.
    Initialize { identifier: Option<HeaderValue>, connection: Option<Arc<SseConnection>> },
    /// It defines which arguments are also sent as headers.
    ModernToolsList,
    /// Nothing, in 2026-07-28.
    Modern,
}

impl PendingRequests {
    /// Adds a request. The returned receiver is closed when the request is removed. Returns `None` if the identifier is
    /// in use, or there are `max` requests.
    pub(crate) fn insert(
        &self,
        id: RequestId,
        requester: Requester,
        purpose: Purpose,
        max: usize,
    ) -> Option<watch::Receiver<()>> {
        let mut entries = self.entries();
        if entries.len() >= max || entries.contains_key(&id) {
            return None;
        }
        let (pending, receiver) = watch::channel(());
        entries.insert(id, PendingRequest { requester, purpose, is_sent: false, task: None, _pending: pending });
        Some(receiver)
    }

    /// Records that a request is being sent.
    pub(crate) fn mark_sent(&self, id: &RequestId) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.is_sent = true;
        }
    }

    /// Stores the task of a request.
    pub(crate) fn set_task(&self, id: &RequestId, task: AbortHandle) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.task = Some(task);
        }
    }

    /// Stores how to reach the session that a handshake opens.
    pub(crate) fn set_session(
        &self,
        id: &RequestId,
        identifier: Option<HeaderValue>,
        connection: Option<Arc<SseConnection>>,
    ) {
        if let Some(entry) = self.entries().get_mut(id)
            && matches!(entry.purpose, Purpose::Initialize { .. })
        {
            entry.purpose = Purpose::Initialize { identifier, connection };
        }
    }

    /// Removes and returns a request.
    pub(crate) fn remove(&self, id: &RequestId) -> Option<PendingRequest> {
        self.entries().remove(id)
    }

    /// Returns a guard that removes a request when it is dropped, also if the task that waits for the response is aborted.
    pub(crate) fn removed_on_drop<'a>(&'a self, id: &'a RequestId) -> RemovedOnDrop<'a> {
        RemovedOnDrop { requests: self, id }
    }

    /// Removes all requests, and returns those of the client.
    pub(crate) fn remove_all(&self) -> Vec<(RequestId, PendingRequest)> {
        self.entries().drain().filter(|(_, entry)| matches!(entry.requester, Requester::Client)).collect()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<RequestId, PendingRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a request when it is dropped.
#[must_use]
pub(crate) struct RemovedOnDrop<'a> {
    requests: &'a PendingRequests,
    id: &'a RequestId,
}

impl Drop for RemovedOnDrop<'_> {
    fn drop(&mut self) {
        self.requests.remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of an aborted task takes no place, and an identifier is used once.
    #[test]
    fn a_request_is_removed_with_its_guard() {
        let requests = PendingRequests::default();
        let id = RequestId::own(1);
        let insert = || requests.insert(id.clone(), Requester::Client, Purpose::ModernToolsList, 1);
        assert!(insert().is_some());
        assert!(insert().is_none());
        drop(requests.removed_on_drop(&id));
        assert!(insert().is_some());
    }
}
