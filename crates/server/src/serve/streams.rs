//! Event streams end with their authorization.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::time::{MissedTickBehavior, interval};

use super::site::Site;

/// How often streams are compared with the time, and introspected tokens that are due are checked.
const PERIOD: Duration = Duration::from_millis(500);

/// Ends streams until the runtime ends.
pub(super) async fn end_unauthorized(site: Arc<ArcSwap<Site>>) {
    let mut period = interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        period.tick().await;
        site.load().sweep_streams();
    }
}
