//! [`PendingRequests`]: the requests that have no answer yet.

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

/// The requests that are under way, by their identifiers. What is not here is answered, refused or cancelled, and
/// nothing more is said about it.
#[derive(Default)]
pub(crate) struct PendingRequests(Mutex<HashMap<RequestId, PendingRequest>>);

/// A request that is under way.
pub(crate) struct PendingRequest {
    pub(crate) requester: Requester,
    pub(crate) purpose: Purpose,
    /// Whether it was sent to the server. Until then, the server needs no cancellation.
    pub(crate) is_sent: bool,
    /// What stops it.
    pub(crate) stop: Option<AbortHandle>,
    /// Dropped with the entry: whoever watches it learns that there is nothing left to wait for.
    _over: watch::Sender<()>,
}

/// Who waits for the answer.
pub(crate) enum Requester {
    Client,
    Bridge(oneshot::Sender<Message>),
}

/// What the answer means to the bridge itself.
pub(crate) enum Purpose {
    /// Nothing.
    Plain,
    /// It changes what the session keeps up.
    ChangeSubscriptions(SubscriptionChange),
    /// It opens a session, under this identifier or over this connection.
    Initialize { identifier: Option<HeaderValue>, connection: Option<Arc<SseConnection>> },
    /// It tells which arguments travel as headers.
    ModernToolsList,
    /// Nothing, and the server speaks 2026-07-28.
    Modern,
}

impl PendingRequests {
    /// Begins a request. None when one with this identifier is under way, or `max` are.
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

    /// Records that a request is sent now.
    pub(crate) fn sent(&self, id: &RequestId) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.is_sent = true;
        }
    }

    /// Makes a request one that can be stopped.
    pub(crate) fn stoppable(&self, id: &RequestId, stop: AbortHandle) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.stop = Some(stop);
        }
    }

    /// Takes note of how the session is reached that a request is going to open.
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

    /// Ends a request.
    pub(crate) fn take(&self, id: &RequestId) -> Option<PendingRequest> {
        self.entries().remove(id)
    }

    /// Ends all requests of the client.
    pub(crate) fn take_all(&self) -> Vec<(RequestId, PendingRequest)> {
        self.entries().drain().filter(|(_, entry)| matches!(entry.requester, Requester::Client)).collect()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<RequestId, PendingRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
