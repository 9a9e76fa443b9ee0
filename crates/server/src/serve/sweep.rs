//! Periodic tasks: expired sessions and tokens, and event streams whose authorization has ended.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_endpoint::StreamRegistry;
use portcullis_session::SessionStore;
use tokio::time::{MissedTickBehavior, interval};

use super::state::ServerState;

/// The size of an allocation that has its own page in the allocator.
const PAGE_BYTES: usize = 4 << 20;

/// Ends expired sessions, removes expired tokens, and returns freed memory until the task is aborted.
pub(super) async fn tables(state: Arc<ArcSwap<ServerState>>) {
    every(SessionStore::SWEEP_INTERVAL, || {
        state.load().sweep();
        return_freed_memory();
    })
    .await
}

/// Makes the allocator return memory that was free for a second to the operating system. The allocator does so only when it
/// allocates or frees a page, which can take long after many streams have closed.
fn return_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(PAGE_BYTES)));
}

/// Ends streams whose authorization has ended, until the runtime ends.
pub(super) async fn streams(state: Arc<ArcSwap<ServerState>>) {
    every(StreamRegistry::SWEEP_INTERVAL, || state.load().sweep_streams()).await
}

async fn every(period: Duration, sweep: impl Fn()) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sweep();
    }
}
