//! Observers that count what they observe.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use portcullis_guard::{Decision, DecisionSink};
use portcullis_session::{EndReason, Session, SessionObserver};
use portcullis_verifier::VerificationObserver;

use super::{Metrics, ResourceMetrics};

/// Counts the requests to one resource, and passes the decisions on.
pub(crate) struct MeasuredRequests<S> {
    pub(crate) inner: Arc<S>,
    pub(crate) metrics: Arc<ResourceMetrics>,
}

impl<S: DecisionSink> DecisionSink for MeasuredRequests<S> {
    fn decided(&self, decision: &Decision<'_>) {
        self.metrics.of_this_thread().decided(decision);
        self.inner.decided(decision);
    }
}

/// Counts the verifications of the tokens of one resource.
#[derive(Debug)]
pub(crate) struct MeasuredTokens(pub(crate) Arc<ResourceMetrics>);

impl VerificationObserver for MeasuredTokens {
    fn cached(&self) {
        self.0.of_this_thread().cached();
    }

    fn verified(&self, elapsed: Duration) {
        self.0.of_this_thread().verified(elapsed);
    }
}

/// Counts sessions, and passes their events on.
pub(crate) struct MeasuredSessions<O> {
    pub(crate) inner: O,
    pub(crate) metrics: Option<Arc<Metrics>>,
}

impl<O: SessionObserver> SessionObserver for MeasuredSessions<O> {
    fn opened(&self, session: &Session) {
        if let Some(metrics) = &self.metrics {
            metrics.sessions_opened.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.opened(session);
    }

    fn adopted(&self, session: &Session) {
        self.inner.adopted(session);
    }

    fn released(&self, session: &Session) {
        self.inner.released(session);
    }

    fn not_sealed(&self, session: &Session) {
        self.inner.not_sealed(session);
    }

    fn ended(&self, session: &Session, reason: EndReason) {
        if let Some(metrics) = &self.metrics {
            metrics.sessions_ended.add(reason.as_str());
        }
        self.inner.ended(session, reason);
    }
}
