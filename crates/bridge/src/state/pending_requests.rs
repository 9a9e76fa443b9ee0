//! [`PendingRequests`]: the requests without a response.

use std::{collections::HashMap, sync::Arc};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::{
    sync::{oneshot, watch},
    task::AbortHandle,
};

use super::{sse_connection::SseConnection, subscriptions::SubscriptionChange};
use crate::message::{Message, RequestId};

/// The requests in progress, by identifier. A request that is not here has been answered, rejected
/// or cancelled; later messages about it are dropped.
#[derive(Default)]
pub(crate) struct PendingRequests(Mutex<HashMap<RequestId, PendingRequest>>);

/// A request in progress.
pub(crate) struct PendingRequest {
    /// The receiver of the response.
    pub(crate) requester: Requester,
    /// What the response means to the bridge.
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
    /// The client of the bridge.
    Client,
    /// A task of the bridge itself.
    Bridge(oneshot::Sender<Message>),
}

/// What the response means to the bridge.
pub(crate) enum Purpose {
    /// Nothing.
    Plain,
    /// It changes the session's subscriptions or log level.
    ChangeSubscriptions(SubscriptionChange),
    /// It opens a session, under this identifier or over this connection.
    Initialize {
        identifier: Option<HeaderValue>,
        connection: Option<Arc<SseConnection>>,
    },
    /// It defines which arguments are also sent as headers.
    ModernToolsList,
    /// Nothing, in 2026-07-28.
    Modern,
}

/// Why a request is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InsertError {
    /// The maximum number of requests is pending, so no other request is accepted until one is
    /// answered or cancelled.
    #[error("too many requests are waiting")]
    Full,
    /// A pending request has this identifier. JSON-RPC responses name a request only by its
    /// identifier, so their responses could not be told apart.
    #[error("a request with this identifier is still in progress")]
    IdInUse,
}

impl PendingRequests {
    /// Adds a request, unless `max` requests are pending. The returned receiver is closed when the
    /// request is removed. Fails as the variants of [`InsertError`] say. The pending requests are
    /// then unchanged.
    pub(crate) fn insert(
        &self,
        id: RequestId,
        requester: Requester,
        purpose: Purpose,
        max: usize,
    ) -> Result<watch::Receiver<()>, InsertError> {
        let mut entries = self.0.lock();
        if entries.contains_key(&id) {
            return Err(InsertError::IdInUse);
        }
        if entries.len() >= max {
            return Err(InsertError::Full);
        }
        let (pending, receiver) = watch::channel(());
        entries.insert(
            id,
            PendingRequest {
                requester,
                purpose,
                is_sent: false,
                task: None,
                _pending: pending,
            },
        );
        Ok(receiver)
    }

    /// Records that a request is being sent.
    pub(crate) fn mark_sent(&self, id: &RequestId) {
        if let Some(entry) = self.0.lock().get_mut(id) {
            entry.is_sent = true;
        }
    }

    /// Stores the task of a request.
    pub(crate) fn set_task(&self, id: &RequestId, task: AbortHandle) {
        if let Some(entry) = self.0.lock().get_mut(id) {
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
        if let Some(entry) = self.0.lock().get_mut(id)
            && matches!(entry.purpose, Purpose::Initialize { .. })
        {
            entry.purpose = Purpose::Initialize {
                identifier,
                connection,
            };
        }
    }

    pub(crate) fn remove(&self, id: &RequestId) -> Option<PendingRequest> {
        self.0.lock().remove(id)
    }

    /// Returns a guard that removes a request when it is dropped, also if the task that waits for
    /// the response is aborted.
    pub(crate) fn removed_on_drop<'a>(&'a self, id: &'a RequestId) -> RemovedOnDrop<'a> {
        RemovedOnDrop { requests: self, id }
    }

    /// Removes all requests, and returns those of the client.
    pub(crate) fn remove_all(&self) -> Vec<(RequestId, PendingRequest)> {
        self.0
            .lock()
            .drain()
            .filter(|(_, entry)| matches!(entry.requester, Requester::Client))
            .collect()
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

    fn insert(
        requests: &PendingRequests,
        number: u64,
        max: usize,
    ) -> Result<watch::Receiver<()>, InsertError> {
        requests.insert(
            RequestId::own(number),
            Requester::Client,
            Purpose::Plain,
            max,
        )
    }

    #[test]
    fn an_identifier_is_used_once_at_a_time() {
        let requests = PendingRequests::default();
        let first = insert(&requests, 1, 8).unwrap();
        assert_eq!(insert(&requests, 1, 8).unwrap_err(), InsertError::IdInUse);
        assert!(
            first.has_changed().is_ok(),
            "the first request is still pending"
        );
        requests.remove(&RequestId::own(1)).unwrap();
        assert!(first.has_changed().is_err(), "its receiver is closed");
        insert(&requests, 1, 8).unwrap();
    }

    #[test]
    fn requests_are_limited() {
        let requests = PendingRequests::default();
        insert(&requests, 1, 2).unwrap();
        insert(&requests, 2, 2).unwrap();
        assert_eq!(insert(&requests, 3, 2).unwrap_err(), InsertError::Full);
        assert_eq!(
            insert(&requests, 2, 2).unwrap_err(),
            InsertError::IdInUse,
            "the more specific reason is returned"
        );
        requests.remove(&RequestId::own(1)).unwrap();
        insert(&requests, 3, 2).unwrap();
    }

    /// A request of an aborted task takes no place.
    #[test]
    fn a_request_is_removed_with_its_guard() {
        let requests = PendingRequests::default();
        insert(&requests, 1, 1).unwrap();
        drop(requests.removed_on_drop(&RequestId::own(1)));
        insert(&requests, 2, 1).unwrap();
    }

    #[test]
    fn only_the_requests_of_the_client_remain_to_be_answered() {
        let requests = PendingRequests::default();
        insert(&requests, 1, 8).unwrap();
        let own = Requester::Bridge(oneshot::channel().0);
        requests
            .insert(RequestId::own(2), own, Purpose::Plain, 8)
            .unwrap();
        let left: Vec<_> = requests
            .remove_all()
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert_eq!(left, [RequestId::own(1)]);
        assert!(requests.remove(&RequestId::own(2)).is_none());
    }

    /// Only a handshake opens a session.
    #[test]
    fn a_session_is_stored_with_a_handshake() {
        let requests = PendingRequests::default();
        let handshake = Purpose::Initialize {
            identifier: None,
            connection: None,
        };
        requests
            .insert(RequestId::own(1), Requester::Client, handshake, 8)
            .unwrap();
        insert(&requests, 2, 8).unwrap();
        for number in [1, 2] {
            requests.set_session(
                &RequestId::own(number),
                Some(HeaderValue::from_static("s")),
                None,
            );
        }
        let purpose = |number| requests.remove(&RequestId::own(number)).unwrap().purpose;
        assert!(
            matches!(purpose(1), Purpose::Initialize { identifier: Some(id), .. } if id == "s")
        );
        assert!(matches!(purpose(2), Purpose::Plain));
    }
}
