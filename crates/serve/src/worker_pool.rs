pub(super) mod worker;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
    time::{Instant, timeout, timeout_at},
};

use self::worker::Worker;
use super::{
    background::memory,
    connection::{ConnectionLimits, request_body::BodyTimeouts},
    router::Router,
    state::ServerState,
};
use portcullis_config::plan::Plan;

/// Started workers.
pub(super) struct WorkerPool {
    /// The handles for the accept loop. The workers end after it has dropped them.
    pub(super) workers: Vec<Worker>,
    pub(super) end: WorkersEnd,
}

pub(super) struct WorkersEnd {
    /// Is closed when all workers have ended.
    ended: mpsc::Receiver<()>,
    cancel: watch::Sender<bool>,
}

impl WorkerPool {
    /// Starts the workers of a plan. Fails when a thread or its runtime cannot be created.
    pub(super) fn start(
        plan: &Plan,
        state: &Arc<ArcSwap<ServerState>>,
        return_freed_memory: fn(),
    ) -> anyhow::Result<Self> {
        let limits = connection_limits(plan);
        let (running, ended) = mpsc::channel(1);
        let (cancel, cancelled) = watch::channel(false);
        let workers = (0..plan.workers)
            .map(|number| {
                let router = Router::new(Arc::clone(state), number, limits.max_headers);
                Worker::start(number, router, limits, cancelled.clone(), running.clone())
            })
            .collect::<Result<Vec<_>, _>>()
            .context("a worker cannot be started")?;
        workers.iter().for_each(|worker| {
            drop(
                worker
                    .runtime()
                    .spawn(memory::return_freed(return_freed_memory)),
            )
        });
        if let Some(metrics) = &state.load().process().observers.metrics {
            workers
                .iter()
                .for_each(|worker| metrics.add_runtime(worker.runtime().clone()));
            metrics.add_runtime(Handle::current());
        }
        Ok(Self {
            workers,
            end: WorkersEnd { ended, cancel },
        })
    }
}

impl WorkersEnd {
    /// Waits until the requests in progress have ended. Cancels them at the deadline, and waits at
    /// most `flush_timeout` until each is logged. A worker that is stuck is not waited for.
    pub(super) async fn wait(
        mut self,
        state: &ArcSwap<ServerState>,
        deadline: Instant,
        flush_timeout: Duration,
    ) {
        if timeout_at(deadline, self.ended.recv()).await.is_ok() {
            return;
        }
        let state = state.load();
        tracing::warn!(
            timeout.seconds = state.shutdown_timeout().as_secs(),
            "cancelling the requests that are still in progress"
        );
        state.cut_off();
        self.cancel.send_replace(true);
        let _ = timeout(flush_timeout, self.ended.recv()).await;
    }
}

fn connection_limits(plan: &Plan) -> ConnectionLimits {
    ConnectionLimits {
        max_head: plan.max_head(),
        max_headers: plan.limits.max_headers,
        idle: plan.limits.header_timeout.0,
        body: BodyTimeouts {
            pause: plan.limits.body_pause.0,
            whole: plan.limits.body_timeout.0,
        },
        max_streams: plan.limits.max_streams,
        max_resets: plan.limits.max_resets,
    }
}
