//! The sweep of expired records of the broker.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::process::BrokerProcess;

/// The time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(5);

/// Removes expired records, a bounded number at a time, until the runtime ends.
pub(crate) async fn sweep(process: BrokerProcess) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_failed = false;
    loop {
        ticks.tick().await;
        let result = process.records.sweep().await;
        if let Err(error) = &result
            && !has_failed
        {
            tracing::warn!(
                error.code = error.code(),
                "expired records of the broker are not removed: {error}"
            );
        }
        has_failed = result.is_err();
    }
}
