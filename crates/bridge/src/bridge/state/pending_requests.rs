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
    pub(crate) stop: Option<AbortHandle>,
    /// Dropped with the entry, which ends the watchers' wait.
    _over: watch::Sender<()>,
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
    /// Adds a request. None if the identifier is in use, or there are `max` requests.
    pub(crate) fn begin(
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
        let (over, watched) = watch::channel(());
        entries.insert(id, PendingRequest { requester, purpose, is_sent: false, stop: None, _over: over });
        Some(watched)
    }

    /// Records that a request is being sent.
    pub(crate) fn sent(&self, id: &RequestId) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.is_sent = true;
        }
    }

    /// Sets the handle that aborts a request.
    pub(crate) fn stoppable(&self, id: &RequestId, stop: AbortHandle) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.stop = Some(stop);
        }
    }

    /// Stores how to reach the session that a request opens.
    pub(crate) fn opens(
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

    /// Removes a request.
    pub(crate) fn take(&self, id: &RequestId) -> Option<PendingRequest> {
        self.entries().remove(id)
    }

    /// Removes all requests of the client.
    pub(crate) fn take_all(&self) -> Vec<(RequestId, PendingRequest)> {
        self.entries().drain().filter(|(_, entry)| matches!(entry.requester, Requester::Client)).collect()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<RequestId, PendingRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
