//! A server that is killed between the steps of a sign-in.

use portcullis_scenarios::{BrokerServer, is_full_run};

use super::{
    Storage,
    sign_in::{Disturbance, Step, sign_in_and_out},
};

/// Kills the server after one step. Of two replicas, the other one gets the next request, and the
/// killed one those after it.
struct KilledAfter {
    step: Step,
    is_down: bool,
}

impl Disturbance for KilledAfter {
    async fn after(&mut self, step: Step, server: &mut BrokerServer) {
        if step == self.step {
            server.fail_over().await;
            self.is_down = true;
        } else if self.is_down {
            server.recover().await;
            self.is_down = false;
        }
    }
}

/// Signs in once for each step, and kills the server after it. In a run that is not full, these
/// steps only.
async fn kill_after(storage: Storage, steps: &[Step]) {
    let steps = if is_full_run() { &Step::ALL } else { steps };
    let Some(mut stored) = storage.start().await else {
        return;
    };
    for &step in steps {
        let mut killed = KilledAfter {
            step,
            is_down: false,
        };
        sign_in_and_out(&mut stored.server, &mut killed).await;
        if killed.is_down {
            stored.server.recover().await;
        }
    }
}

/// ST3: every response is durable. A sign-in continues after a kill at any step; used codes,
/// callbacks and ends stay.
#[tokio::test]
async fn a_sign_in_survives_a_kill_after_every_step() {
    kill_after(Storage::File, &Step::ALL).await;
}

/// ST3: the same with the records in Redis, in a full run.
#[tokio::test]
async fn a_sign_in_in_redis_survives_kills() {
    if is_full_run() {
        kill_after(Storage::Redis, &Step::ALL).await;
    }
}

/// ST3: the same with two replicas, of which one goes on while the other one is dead.
#[tokio::test]
async fn a_sign_in_at_two_replicas_survives_kills() {
    let steps = [Step::Approved, Step::Exchanged, Step::Revoked];
    kill_after(Storage::TwoReplicas, &steps).await;
}
