//! The observers of decisions and streams: access log and audit trail.

use std::sync::Arc;

use portcullis_endpoint::{EndedStream, StreamObserver};
use portcullis_guard::{Decision, DecisionSink};

use crate::{audit::Audit, metrics::Metrics, telemetry::AccessLog};

/// The access log, the audit trail where one is kept, and the metrics if there are any.
#[derive(Clone)]
pub(super) struct Observers {
    pub(super) access: Arc<AccessLog>,
    pub(super) audit: Option<Audit>,
    pub(super) metrics: Option<Arc<Metrics>>,
}

impl DecisionSink for Observers {
    fn decided(&self, decision: &Decision<'_>) {
        self.access.decided(decision);
        if let Some(audit) = &self.audit {
            audit.decided(decision);
        }
    }
}

impl StreamObserver for Observers {
    fn ended(&self, stream: &EndedStream<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.stream_ended(stream.reason.code());
        }
        if let Some(audit) = &self.audit {
            audit.stream_ended(stream);
        }
    }
}
