//! The end of all sessions at a shutdown.

use std::{sync::Arc, time::Duration};

use portcullis_session::{EndReason, Session, SessionStore};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, yield_now},
    time::{Instant, timeout},
};

use crate::audit::AuditTrail;

/// The longest time that the upstreams get to be told of the sessions that a shutdown ends.
const TELL_TIMEOUT: Duration = Duration::from_secs(2);

/// Sessions that are ended without a look at the clock.
const BATCH: usize = 256;

/// Ends all sessions, audits each end, and returns them. Where the audit trail has no capacity left, it waits for it until
/// `deadline`; the sessions that are left then end with the program, and the log counts them.
pub(super) async fn end(sessions: &SessionStore, audit: Option<&AuditTrail>, deadline: Instant) -> Vec<Arc<Session>> {
    let mut left = sessions.all();
    let mut ended = Vec::with_capacity(left.len());
    while !left.is_empty() && Instant::now() < deadline {
        for session in left.drain(left.len().saturating_sub(BATCH)..) {
            if let Some(audit) = audit.filter(|audit| audit.is_half_full()) {
                audit.drained(deadline).await;
            }
            if sessions.end(&session, EndReason::Shutdown) {
                ended.push(session);
            }
        }
        yield_now().await;
    }
    if !left.is_empty() {
        tracing::error!(
            audit.unwritten = left.len(),
            "the end of sessions is not audited, there was no time left for it"
        );
        ended.append(&mut left);
    }
    if !ended.is_empty() {
        tracing::info!(sessions = ended.len(), "sessions ended with the shutdown");
    }
    ended
}

/// The task that tells upstreams of ended sessions.
pub(super) struct Teller {
    pub(super) last: oneshot::Sender<Vec<Arc<Session>>>,
    pub(super) task: JoinHandle<()>,
}

impl Teller {
    /// Has the upstreams told of these sessions, and of those that wait already, as far as the time allows: `within`, and at
    /// most 2 s.
    pub(super) async fn finish(mut self, sessions: Vec<Arc<Session>>, within: Duration) {
        // It fails only when the task has ended.
        let _ = self.last.send(sessions);
        if timeout(within.min(TELL_TIMEOUT), &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!(
                "upstreams were not told of all ended sessions in time; the rest is left to their own time-outs"
            );
        }
    }
}
