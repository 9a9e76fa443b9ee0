use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::{sync::watch, time::sleep};

use crate::state::ServerState;

/// Returns a channel whose value becomes true after `shutdown` and the configured delay. During the
/// delay, `/readyz` answers 503, so that load balancers choose another server, and everything else
/// is served as before.
pub(crate) fn begin_after(
    mut shutdown: watch::Receiver<bool>,
    state: Arc<ArcSwap<ServerState>>,
) -> watch::Receiver<bool> {
    let (begin, draining) = watch::channel(false);
    tokio::spawn(async move {
        // An error means that the sender is gone, which is also a shutdown.
        let _ = shutdown.wait_for(|shutdown| *shutdown).await;
        state.load().set_draining();
        let delay = state.load().shutdown_delay();
        if !delay.is_zero() {
            tracing::info!(
                delay.seconds = delay.as_secs_f64(),
                "shutdown begins after the delay: /readyz answers 503"
            );
            sleep(delay).await;
        }
        let _ = begin.send(true);
    });
    draining
}
