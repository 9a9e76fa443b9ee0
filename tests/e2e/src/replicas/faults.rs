use std::{rc::Rc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use super::{
    deployment::{Deployment, REPLICAS},
    tally::Tally,
};

/// The time between two kills of replicas.
const KILL_INTERVAL: Duration = Duration::from_secs(5);
/// The time between a kill of Redis and its restart.
const OUTAGE: Duration = Duration::from_millis(500);
/// The number of kills of Redis.
const OUTAGES: u32 = 2;

/// Causes the faults of a run: replicas that are killed, and a Redis that loses its data.
#[derive(Clone)]
pub(super) struct Faults {
    deployment: Rc<Deployment>,
    tally: Rc<Tally>,
}

impl Faults {
    pub(super) fn new(deployment: Rc<Deployment>, tally: Rc<Tally>) -> Self {
        Self { deployment, tally }
    }

    /// Kills the replicas in turn and restarts each immediately, until shortly before `end`.
    pub(super) async fn kill_replicas(self, end: Instant) -> anyhow::Result<()> {
        let mut next = Instant::now() + KILL_INTERVAL;
        for number in (0..REPLICAS).cycle() {
            if next + KILL_INTERVAL > end {
                return Ok(());
            }
            sleep_until(next).await;
            next += KILL_INTERVAL;
            self.tally
                .killed(self.deployment.replica(number).to_string());
            self.deployment.kill_replica(number).await?;
            self.deployment.start_replica(number).await?;
        }
        Ok(())
    }

    /// Kills and restarts Redis twice, at one and two thirds of the duration.
    pub(super) async fn restart_redis(self, duration: Duration) -> anyhow::Result<()> {
        let started = Instant::now();
        for number in 1..=OUTAGES {
            sleep_until(started + duration * number / (OUTAGES + 1)).await;
            self.tally.redis_killed();
            self.deployment.kill_redis().await?;
            sleep(OUTAGE).await;
            self.deployment.start_redis().await?;
            self.tally.redis_started();
        }
        Ok(())
    }
}
