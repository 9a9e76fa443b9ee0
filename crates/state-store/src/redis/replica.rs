//! The task of a replica: connects to Redis, and connects again whenever the connection is lost.

mod connected;
mod connection;
mod inbox;
mod removal;
mod removal_schedule;
mod sending;
mod server_info;
mod synchronizing;

use std::{sync::Arc, time::Duration};

use redis::RedisResult;
use tokio::time::sleep;

use self::connected::Connected;
use super::{
    failure,
    membership::{MAX_BACKOFF, Membership},
    receiver::Receiver,
    state::JournalState,
};

/// The first time between two attempts to connect. It doubles up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Duration = Duration::from_millis(50);

/// Exchanges records with the other replicas until the queue is closed. Returns early only if the
/// operating system returns no random bytes.
pub(super) async fn run(state: Arc<JournalState>, receiver: Receiver) {
    let Some(replica) = connection::random_name() else {
        tracing::error!(
            "the operating system returns no random bytes; the ends of sessions are not shared"
        );
        return;
    };
    let mut membership = Membership::default();
    let mut backoff = MIN_BACKOFF;
    let mut reported = None;
    while !state.queue.is_closed() {
        let Err(error) = exchange(&state, &receiver, &replica, &mut membership).await else {
            break;
        };
        membership.disconnect();
        let failure = failure::describe(&error);
        let was_connected = disconnect(&state, failure.clone());
        if was_connected {
            backoff = MIN_BACKOFF;
        }
        // Repeated attempts that fail for the same reason are logged once.
        if was_connected || reported.as_ref() != Some(&failure) {
            tracing::error!(
                redis.address = state.address,
                "redis cannot be used: {failure}; known sessions continue, and deleting a session fails until it can"
            );
            reported = Some(failure);
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
    disconnect(&state, "the journal is closed".to_owned());
}

/// Connects, and exchanges records until the queue is closed. Fails if Redis cannot be used, or
/// when the connection is lost.
async fn exchange(
    state: &Arc<JournalState>,
    receiver: &Receiver,
    replica: &str,
    membership: &mut Membership,
) -> RedisResult<()> {
    let connection = connection::connect(state, receiver, replica).await?;
    Connected::new(state, receiver, connection, membership)
        .serve()
        .await
}

/// Records that there is no connection. The tickets of the records that wait fail. Returns whether
/// there was a connection.
fn disconnect(state: &JournalState, failure: String) -> bool {
    state.queue.disconnect();
    state.acknowledgements.disconnect();
    state.status.disconnect(failure)
}
