use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

/// Calls a function at once and then periodically, until the task is aborted.
pub(crate) async fn every(period: Duration, call: impl Fn()) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        call();
    }
}
