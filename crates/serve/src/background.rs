//! The tasks of the control runtime that run beside the workers.

pub(super) mod memory;
pub(super) mod periodic;
mod sweep;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_session::Session;
use tokio::{
    signal::unix::Signal,
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{
    admin::AdminServers,
    broker,
    limits::exchange::{self, CurrentLimits},
    persistence::session_persistence,
    reload::Reloader,
    replicas::{Replicas, broker_ends, revocations::CurrentRevocations},
    sessions::{shutdown::UpstreamEndTask, upstream_end::UpstreamEnder},
    state::ServerState,
};

/// What the tasks are started with.
pub(super) struct TaskInputs {
    pub(super) upstream_ender: UpstreamEnder,
    pub(super) reloader: Reloader,
    /// The signals at which the configuration is reloaded, if the process handles any.
    pub(super) hangups: Option<Signal>,
    /// `None` without a listener for administrators.
    pub(super) admin: Option<AdminServers>,
    /// Whether last uses of sessions are recorded outside the process.
    pub(super) records_last_uses: bool,
    /// See [`Program::return_freed_memory`](super::Program::return_freed_memory).
    pub(super) return_freed_memory: fn(),
}

/// The running tasks. Those that are not held here, such as the sweep of event streams, end with
/// the runtime.
pub(super) struct BackgroundTasks {
    upstream_ends: UpstreamEndTask,
    replicas: Option<ReplicasTask>,
    table_sweep: JoinHandle<()>,
    reloads: JoinHandle<()>,
    admin: Option<AdminTask>,
}

/// The connection to other replicas.
struct ReplicasTask {
    replicas: Replicas,
    task: JoinHandle<()>,
}

/// The listener for administrators.
struct AdminTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl BackgroundTasks {
    /// Starts the tasks on the current runtime.
    pub(super) fn start(state: &Arc<ArcSwap<ServerState>>, inputs: TaskInputs) -> Self {
        let TaskInputs {
            upstream_ender,
            reloader,
            hangups,
            admin,
            records_last_uses,
            return_freed_memory,
        } = inputs;
        let process = state.load().process().clone();
        if records_last_uses {
            tokio::spawn(session_persistence::record_last_uses(
                process.sessions.clone(),
            ));
        }
        if let Some(broker) = process.broker {
            if broker.is_shared {
                tokio::spawn(broker_ends::follow(Arc::clone(state)));
            }
            tokio::spawn(broker::sweep::sweep(broker));
        }
        let (last_sessions, sessions_at_shutdown) = oneshot::channel();
        let upstream_ends = tokio::spawn(upstream_ender.run(sessions_at_shutdown));
        let replicas = process.replicas.map(|replicas| {
            let task = replicas.spawn(
                process.sessions,
                Arc::new(CurrentLimits(Arc::clone(state))),
                Arc::new(CurrentRevocations(Arc::clone(state))),
            );
            exchange::start(state, &replicas);
            ReplicasTask { task, replicas }
        });
        tokio::spawn(sweep::streams(Arc::clone(state)));
        tokio::spawn(memory::return_freed(return_freed_memory));
        Self {
            upstream_ends: UpstreamEndTask {
                last_sessions,
                task: upstream_ends,
            },
            replicas,
            table_sweep: tokio::spawn(sweep::tables(Arc::clone(state))),
            reloads: tokio::spawn(reloader.run(hangups)),
            admin: admin.map(|admin| {
                let (stop, stopped) = watch::channel(false);
                AdminTask {
                    stop,
                    task: tokio::spawn(admin.run(stopped)),
                }
            }),
        }
    }

    /// Waits until the ends of sessions at other replicas are known, for a bounded time, or until
    /// `shutdown` is true.
    pub(super) async fn wait_for_replicas(&self, mut shutdown: watch::Receiver<bool>) {
        let Some(ReplicasTask { replicas, .. }) = &self.replicas else {
            return;
        };
        tokio::select! {
            () = replicas.joined() => {}
            _ = shutdown.wait_for(|is_shutting_down| *is_shutting_down) => {}
        }
    }

    /// Stops reloads, so that the configuration does not change any more.
    pub(super) fn stop_reloads(&self) {
        self.reloads.abort();
    }

    /// Stops the sweep of expired sessions and tokens, and asks the listener for administrators to
    /// stop.
    pub(super) fn stop_changes(&self) {
        self.table_sweep.abort();
        if let Some(admin) = &self.admin {
            admin.stop.send_replace(true);
        }
    }

    /// Waits until the actions of administrators in progress have ended, so that they reach the
    /// audit trail.
    pub(super) async fn finish_admin(&mut self, limit: Duration) {
        if let Some(admin) = self.admin.take() {
            let _ = timeout(limit, admin.task).await;
        }
    }

    /// Ends these sessions at their upstreams, and leaves the other replicas, within `limit`.
    pub(super) async fn finish(self, ended: Vec<Arc<Session>>, limit: Duration) {
        let leave_replicas = async {
            if let Some(ReplicasTask { replicas, task }) = self.replicas {
                replicas.finish(task, limit).await;
            }
        };
        tokio::join!(self.upstream_ends.finish(ended, limit), leave_replicas);
    }
}
