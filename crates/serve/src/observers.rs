//! [`Observers`]: the access log, the audit trail, the metrics and the traces, which are told of
//! decisions and ended streams.

use std::sync::Arc;

use portcullis_audit::Audit;
use portcullis_endpoint::{EndedStream, StreamObserver};
use portcullis_guard::{Decision, DecisionSink};
use portcullis_telemetry::{AccessLog, Traces, metrics::Metrics};

/// The access log, and the audit trail, the metrics and the traces if they are configured.
#[derive(Clone)]
pub(super) struct Observers {
    pub(super) access: Arc<AccessLog>,
    pub(super) audit: Option<Audit>,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) traces: Option<Traces>,
}

/// The metrics are not told here:
/// [`MeasuredRequests`](portcullis_telemetry::metrics::MeasuredRequests) counts the decisions of
/// each resource.
impl DecisionSink for Observers {
    fn decided(&self, decision: &Decision<'_>) {
        self.access.decided(decision);
        if let Some(audit) = &self.audit {
            audit.decided(decision);
        }
        if let Some(traces) = &self.traces {
            traces.decided(decision);
        }
    }
}

/// The access log and the traces are not told: they have one entry for each request, that of its
/// decision.
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
