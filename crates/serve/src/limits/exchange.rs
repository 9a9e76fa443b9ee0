//! The exchange of counted requests and of opened sessions with other replicas, so that limits
//! apply to all of them together.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_session::SessionStore;
use portcullis_state_store::{LimitCounts, LimitUse};

use crate::{background::periodic::every, replicas::Replicas, state::ServerState};

/// How often the counts are exchanged.
const INTERVAL: Duration = SessionStore::ANNOUNCE_INTERVAL;

/// Counts the requests of other replicas in the current configuration.
pub(crate) struct CurrentLimits(pub(crate) Arc<ArcSwap<ServerState>>);

impl LimitCounts for CurrentLimits {
    fn add(&self, uses: &[LimitUse]) {
        self.0.load().limit_registry().add(uses);
    }
}

/// Starts the exchange on the current runtime. It ends with the runtime.
#[cfg_attr(
    not(feature = "redis"),
    expect(unreachable_code, reason = "there are no replicas")
)]
pub(crate) fn start(state: &Arc<ArcSwap<ServerState>>, replicas: &Replicas) {
    tokio::spawn(run(Arc::clone(state), replicas.clone()));
}

/// Sends the requests that were counted here, and the sessions that were opened, to the other
/// replicas, periodically.
async fn run(state: Arc<ArcSwap<ServerState>>, replicas: Replicas) {
    every(INTERVAL, || {
        let state = state.load();
        state.process().sessions.announce_opened();
        let uses = state.limit_registry().take_uses();
        if !uses.is_empty() {
            replicas.share_limit_uses(&uses);
        }
    })
    .await
}
