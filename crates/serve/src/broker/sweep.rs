//! The sweep of expired records and ends of the broker.

use std::{sync::Arc, time::Duration};

use portcullis_metadata::Clock;
use tokio::time::{MissedTickBehavior, interval};

use super::process::BrokerProcess;

/// The time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(5);

/// Removes expired records and ends, a bounded number of records at a time, until the runtime ends.
pub(crate) async fn sweep(process: BrokerProcess, clock: Arc<dyn Clock>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_failed = false;
    loop {
        ticks.tick().await;
        process.ends.sweep(clock.now());
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
