//! The ends of grants and tokens at the brokers of other replicas.

use std::{error::Error as _, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::state::ServerState;

/// The time between two reads.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long reads may fail before this is logged.
const LOG_AFTER: Duration = Duration::from_secs(3);

/// Reads the ends that other replicas have stored, until the runtime ends.
pub(crate) async fn follow(state: Arc<ArcSwap<ServerState>>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut outage = Outage::None;
    loop {
        ticks.tick().await;
        let Some(broker) = state.load().broker().cloned() else {
            continue;
        };
        outage = match (broker.refresh_ends().await, outage) {
            (Ok(()), outage) => {
                if outage == Outage::Logged {
                    tracing::info!("the ends of sign-ins at other replicas can be read again");
                }
                Outage::None
            }
            (Err(_), Outage::None) => Outage::Since(Instant::now()),
            (Err(error), Outage::Since(start)) if start.elapsed() >= LOG_AFTER => {
                tracing::error!(
                    error = error.source().unwrap_or(&error),
                    "the ends of sign-ins at other replicas cannot be read; until they can, this replica accepts tokens that were \
                     revoked there"
                );
                Outage::Logged
            }
            (Err(_), outage) => outage,
        };
    }
}

/// A time in which ends cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outage {
    None,
    Since(Instant),
    Logged,
}
