use std::sync::Arc;

use tokio::{sync::mpsc, task::AbortHandle};

use super::{
    gate::Closed,
    hub::{Hub, explanation},
    legacy, listen,
    message::{Kind, Message},
    modern,
};

/// What goes to the server and is not answered, in the order in which it came: notifications, and answers to what the
/// server asked.
pub(super) struct Parcel {
    pub(super) message: Message,
    pub(super) way: ParcelWay,
    /// What is stopped once the server knows.
    pub(super) stops: Option<AbortHandle>,
    /// What may go on once the server knows.
    pub(super) opens: Option<Closed>,
}

pub(super) enum ParcelWay {
    Legacy,
    /// A notification of this method, of this revision.
    Modern {
        method: String,
        version: String,
    },
}

impl Parcel {
    pub(super) fn modern(message: Message, method: String, version: String) -> Self {
        Self { message, way: ParcelWay::Modern { method, version }, stops: None, opens: None }
    }
}

/// How many parcels may wait.
pub(super) const LENGTH: usize = 64;

/// Delivers parcels one by one.
pub(super) async fn deliver(hub: Arc<Hub>, mut parcels: mpsc::Receiver<Parcel>) {
    while let Some(Parcel { message, way, stops, opens }) = parcels.recv().await {
        // An answer goes out at once: the server may want it before it answers the handshake.
        let is_notification = matches!(message.kind, Kind::Notification { .. });
        if is_notification {
            hub.handshake.pass().await;
        }
        // Another session has its own requests, and its own beginning.
        let again = is_notification && stops.is_none() && opens.is_none();
        let sent = match &way {
            ParcelWay::Legacy => legacy::notify(&hub, message.text.clone(), again).await,
            ParcelWay::Modern { method, version } => modern::notify(&hub, &message, method, version).await,
        };
        if let Err(error) = sent {
            tracing::warn!(reason = error.code(), "a message did not reach the server: {}", explanation(&error));
        } else if opens.is_some() {
            listen::ensure(&hub);
        }
        if let Some(stop) = stops {
            stop.abort();
        }
    }
}
