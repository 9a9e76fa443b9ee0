//! The sweeps of expired sessions and tokens and of event streams.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_endpoint::StreamRegistry;
use portcullis_session::SessionStore;

use super::periodic::every;
use crate::state::ServerState;

/// Ends expired sessions and removes expired tokens until the task is aborted.
pub(super) async fn tables(state: Arc<ArcSwap<ServerState>>) {
    every(SessionStore::SWEEP_INTERVAL, || state.load().sweep()).await
}

/// Ends streams whose authorization has ended, until the runtime ends.
pub(super) async fn streams(state: Arc<ArcSwap<ServerState>>) {
    every(StreamRegistry::SWEEP_INTERVAL, || {
        state.load().sweep_streams()
    })
    .await
}
