//! The shutdown: streams and requests end first, then sessions, then the logs.

pub(super) mod drain;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_audit::AuditTrail;
use portcullis_telemetry::{AccessLog, TraceExport};
use tokio::time::Instant;

use super::{
    background::BackgroundTasks,
    persistence::session_persistence::{self, SessionPersistence},
    sessions::shutdown::end_all,
    state::ServerState,
    worker_pool::WorkersEnd,
};

/// The minimum time for cancelled requests to report their end, and for the audit trail to write
/// its last records.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that accepts no more connections.
pub(super) struct Shutdown {
    pub(super) state: Arc<ArcSwap<ServerState>>,
    pub(super) workers: WorkersEnd,
    pub(super) tasks: BackgroundTasks,
    pub(super) persistence: SessionPersistence,
    pub(super) access: Arc<AccessLog>,
    pub(super) audit: Option<AuditTrail>,
    pub(super) traces: Option<TraceExport>,
}

impl Shutdown {
    /// Ends everything, within the configured time and [`FINAL_FLUSH_TIMEOUT`] for each of the last
    /// steps. Fails when the last access lines cannot be written.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let Self {
            state,
            workers,
            mut tasks,
            persistence,
            access,
            audit,
            traces,
        } = self;
        tracing::info!("shutting down: waiting for requests in progress");
        tasks.stop_reloads();
        let state_at_shutdown = state.load_full();
        state_at_shutdown.end_listeners();
        let deadline = Instant::now() + state_at_shutdown.shutdown_timeout();
        workers.wait(&state, deadline, FINAL_FLUSH_TIMEOUT).await;
        tasks.stop_changes();

        let sessions = &state_at_shutdown.process().sessions;
        let audit_deadline = deadline.max(Instant::now() + FINAL_FLUSH_TIMEOUT);
        let ended = end_all(
            sessions,
            persistence.continue_after_restart(),
            audit.as_ref(),
            audit_deadline,
        )
        .await;
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(FINAL_FLUSH_TIMEOUT);
        sessions.record_last_uses();
        tasks.finish_admin(FINAL_FLUSH_TIMEOUT).await;

        let write_audit = async {
            if let Some(audit) = audit {
                audit.finish(left).await;
            }
        };
        let write_journal = async {
            if let Some(journal) = persistence.journal() {
                session_persistence::finish(&journal, left).await;
            }
        };
        let send_traces = async {
            if let Some(traces) = traces {
                traces.finish(left).await;
            }
        };
        tokio::join!(
            tasks.finish(ended, left),
            write_audit,
            write_journal,
            send_traces
        );
        Ok(access.flush(&mut std::io::stderr())?)
    }
}
