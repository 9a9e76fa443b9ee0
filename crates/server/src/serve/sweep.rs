//! Periodic tasks: expired sessions and tokens, and event streams whose authorization has ended.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::time::{MissedTickBehavior, interval};

use super::state::ServerState;

/// How often expired sessions and tokens are removed.
const TABLE_PERIOD: Duration = Duration::from_secs(5);

/// How often streams are compared with the time, and introspected tokens that are due are checked.
const STREAM_PERIOD: Duration = Duration::from_millis(500);

/// Ends expired sessions and removes expired tokens until the task is aborted.
pub(super) async fn tables(state: Arc<ArcSwap<ServerState>>) {
    every(TABLE_PERIOD, || state.load().sweep()).await
}

/// Ends streams whose authorization has ended until the runtime ends.
pub(super) async fn streams(state: Arc<ArcSwap<ServerState>>) {
    every(STREAM_PERIOD, || state.load().sweep_streams()).await
}

async fn every(period: Duration, sweep: impl Fn()) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sweep();
    }
}
