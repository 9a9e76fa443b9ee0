//! [`SessionEvents`]: what follows from the beginning and the end of a session.

use std::sync::Arc;

use portcullis_audit::Audit;
use portcullis_session::{EndReason, Session, SessionObserver};
use portcullis_telemetry::metrics::Metrics;

use super::upstream_end::UpstreamEndQueue;

/// Observes sessions: audits, counts and logs them, and queues the end of their upstream sessions.
pub(crate) struct SessionEvents {
    pub(crate) upstream_ends: UpstreamEndQueue,
    pub(crate) audit: Option<Audit>,
    pub(crate) metrics: Option<Arc<Metrics>>,
}

/// Who ends the session of an ended session at its upstream.
#[derive(Debug, PartialEq, Eq)]
enum UpstreamEnd {
    /// This observer, through the queue.
    Queued,
    /// The caller, together with others: there can be more of these than the queue can hold.
    ByCaller,
    /// No one: it has ended there.
    Done,
}

impl UpstreamEnd {
    fn of(reason: EndReason) -> Self {
        match reason {
            EndReason::Shutdown
            | EndReason::ResourceRemoved
            | EndReason::BackendRemoved
            | EndReason::IssuerRemoved
            | EndReason::Administrator
            | EndReason::SignedOut => Self::ByCaller,
            // This or another process deleted it there, or the upstream did not know it.
            EndReason::Deleted | EndReason::TransportClosed | EndReason::EndedElsewhere => {
                Self::Done
            }
            // Of the sessions of a scope, another process has deleted only those that it knew.
            _ => Self::Queued,
        }
    }
}

impl SessionObserver for SessionEvents {
    fn opened(&self, session: &Session) {
        if let Some(metrics) = &self.metrics {
            metrics.session_opened();
        }
        if let Some(audit) = &self.audit {
            audit.session_opened(session);
        }
    }

    fn adopted(&self, session: &Session) {
        tracing::info!(session = %session.log_hash(), "session continued");
    }

    fn released(&self, session: &Session) {
        tracing::debug!(session = %session.log_hash(), "session left to another process");
    }

    fn not_sealed(&self, session: &Session) {
        tracing::warn!(
            resource = session.resource().as_str(),
            "session identifiers of this upstream have more than {} bytes: its sessions end with this process",
            Session::MAX_BACKEND_ID
        );
    }

    fn ended(&self, session: &Session, reason: EndReason) {
        if let Some(metrics) = &self.metrics {
            metrics.session_ended(reason);
        }
        if let Some(audit) = &self.audit {
            audit.session_ended(session, reason);
        }
        let upstream_end = UpstreamEnd::of(reason);
        if upstream_end == UpstreamEnd::ByCaller {
            // The caller logs one line for all of them.
            tracing::debug!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
        } else {
            tracing::info!(session = %session.log_hash(), session.reason = reason.as_str(), "session ended");
        }
        if upstream_end == UpstreamEnd::Queued {
            self.upstream_ends.add_session(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E9: sessions that the upstream still has are ended there, once.
    #[test]
    fn each_session_is_ended_at_its_upstream_once() {
        for (reason, expected) in [
            (EndReason::Idle, UpstreamEnd::Queued),
            (EndReason::Lifetime, UpstreamEnd::Queued),
            (EndReason::Evicted, UpstreamEnd::Queued),
            (EndReason::Overflow, UpstreamEnd::Queued),
            (EndReason::DeleteFailed, UpstreamEnd::Queued),
            (EndReason::ScopeEndedElsewhere, UpstreamEnd::Queued),
            (EndReason::Deleted, UpstreamEnd::Done),
            (EndReason::TransportClosed, UpstreamEnd::Done),
            (EndReason::EndedElsewhere, UpstreamEnd::Done),
            (EndReason::Shutdown, UpstreamEnd::ByCaller),
            (EndReason::ResourceRemoved, UpstreamEnd::ByCaller),
            (EndReason::BackendRemoved, UpstreamEnd::ByCaller),
            (EndReason::IssuerRemoved, UpstreamEnd::ByCaller),
            (EndReason::Administrator, UpstreamEnd::ByCaller),
            (EndReason::SignedOut, UpstreamEnd::ByCaller),
        ] {
            assert_eq!(UpstreamEnd::of(reason), expected, "{reason:?}");
        }
    }
}
