//! Ending of all sessions at shutdown.

use std::{sync::Arc, time::Duration};

use portcullis_audit::AuditTrail;
use portcullis_session::{EndReason, Session, SessionStore};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, yield_now},
    time::{Instant, timeout},
};

/// The longest time for ending sessions at the upstreams.
const UPSTREAM_END_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of sessions that are ended between two checks of the deadline.
const BATCH: usize = 256;

/// Ends the sessions that end with the program, audits each end, and returns the sessions. With
/// `keeps_keys`, the next program or another replica continues the sessions whose identifiers
/// contain the upstream's. If the queue of the audit trail is full, waits for it until `deadline`.
/// The remaining sessions end with the program and are not audited; the log has their number.
pub(crate) async fn end_all(
    sessions: &SessionStore,
    keeps_keys: bool,
    audit: Option<&AuditTrail>,
    deadline: Instant,
) -> Vec<Arc<Session>> {
    let mut left = sessions.all();
    let all = left.len();
    left.retain(|session| !(keeps_keys && session.is_sealed()));
    if left.len() < all {
        tracing::info!(
            sessions = all - left.len(),
            "sessions continue after the shutdown"
        );
    }
    let mut ended = Vec::with_capacity(left.len());
    while !left.is_empty() && Instant::now() < deadline {
        for session in left.drain(left.len().saturating_sub(BATCH)..) {
            if let Some(audit) = audit.filter(|audit| audit.is_half_full()) {
                audit.drained(deadline).await;
            }
            if sessions.end(&session, EndReason::Shutdown).is_some() {
                ended.push(session);
            }
        }
        yield_now().await;
    }
    if !left.is_empty() && audit.is_some() {
        tracing::error!(
            audit.unwritten = left.len(),
            "the end of these sessions is not audited: there was not enough time"
        );
    }
    ended.append(&mut left);
    if !ended.is_empty() {
        tracing::info!(sessions = ended.len(), "sessions ended with the shutdown");
    }
    ended
}

/// The task that ends sessions at the upstreams.
pub(crate) struct UpstreamEndTask {
    pub(crate) last_sessions: oneshot::Sender<Vec<Arc<Session>>>,
    pub(crate) task: JoinHandle<()>,
}

impl UpstreamEndTask {
    /// Ends these sessions and the queued ones at their upstreams, for at most `within` and at most
    /// 2 s.
    pub(crate) async fn finish(mut self, sessions: Vec<Arc<Session>>, within: Duration) {
        // Fails only when the task has ended.
        let _ = self.last_sessions.send(sessions);
        if timeout(within.min(UPSTREAM_END_TIMEOUT), &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
            tracing::warn!(
                "not all sessions were ended at their upstreams in time; the rest is left to the upstreams' own timeouts"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use portcullis_audit::{AuditSettings, AuditTarget};
    use portcullis_metadata::{ResourceUri, Scopes, SystemClock};
    use portcullis_session::{Owner, SessionKey, SessionSettings};

    use super::*;
    use crate::sessions::{events::SessionEvents, upstream_end::UpstreamEndQueue};

    const COUNT: usize = 5_000;

    fn store(audit: Option<&AuditTrail>) -> SessionStore {
        let (upstream_ends, _) = UpstreamEndQueue::new();
        let audit = audit.map(|trail| trail.audit().clone());
        let events = SessionEvents {
            upstream_ends,
            audit,
            metrics: None,
        };
        let settings = SessionSettings::new(SessionKey::random().unwrap());
        let store = SessionStore::builder(settings)
            .observer(Arc::new(events))
            .build();
        let resource = ResourceUri::parse("https://mcp.example.com/mcp")
            .unwrap()
            .into();
        for _ in 0..COUNT {
            let reservation = store
                .reserve(&resource, Owner::Anonymous, &Scopes::empty())
                .unwrap();
            drop(reservation.open(Box::from(*b"backend"), None).unwrap());
        }
        store
    }

    /// E9, J4: the end of every session is audited, even if the queue of the trail is too small for
    /// all of them.
    #[tokio::test]
    async fn each_end_is_audited() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("audit.jsonl");
        let mut settings = AuditSettings::new(AuditTarget::File(file.clone()));
        settings.queue = 256 << 10;
        let audit = AuditTrail::start(&settings, None, 1, Arc::new(SystemClock::new())).unwrap();
        let sessions = store(Some(&audit));
        let deadline = Instant::now() + Duration::from_secs(60);
        assert_eq!(
            end_all(&sessions, false, Some(&audit), deadline)
                .await
                .len(),
            COUNT
        );
        assert!(sessions.is_empty());

        audit.finish(Duration::from_secs(60)).await;
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text.matches("\"session.reason\":\"shutdown\"").count(),
            COUNT
        );
    }

    /// E9: after the deadline, the remaining sessions are not ended here. They are still returned,
    /// to be ended at their upstreams.
    #[tokio::test]
    async fn the_time_is_bounded() {
        let sessions = store(None);
        assert_eq!(
            end_all(&sessions, false, None, Instant::now()).await.len(),
            COUNT
        );
        assert_eq!(sessions.len(), COUNT);
        let deadline = Instant::now() + Duration::from_secs(60);
        assert_eq!(end_all(&sessions, false, None, deadline).await.len(), COUNT);
        assert!(sessions.is_empty());
    }

    /// E12: a session that the next program continues does not end.
    #[tokio::test]
    async fn sessions_that_continue_do_not_end() {
        let sessions = store(None);
        let deadline = Instant::now() + Duration::from_secs(60);
        let resource = ResourceUri::parse("https://mcp.example.com/mcp")
            .unwrap()
            .into();
        let reservation = sessions
            .reserve(&resource, Owner::Anonymous, &Scopes::empty())
            .unwrap();
        drop(
            reservation
                .open(vec![b'x'; Session::MAX_BACKEND_ID + 1].into(), None)
                .unwrap(),
        );
        assert_eq!(end_all(&sessions, true, None, deadline).await.len(), 1);
        assert_eq!(sessions.len(), COUNT);
    }

    /// E9: a silent upstream is not waited for.
    #[tokio::test(start_paused = true)]
    async fn a_silent_upstream_is_not_waited_for() {
        let (last_sessions, _received) = oneshot::channel();
        let task = tokio::spawn(std::future::pending());
        let started = Instant::now();
        UpstreamEndTask {
            last_sessions,
            task,
        }
        .finish(Vec::new(), Duration::from_secs(60))
        .await;
        assert_eq!(started.elapsed(), UPSTREAM_END_TIMEOUT);
    }
}
