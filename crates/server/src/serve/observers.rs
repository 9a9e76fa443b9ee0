//! The observers of decisions and streams: access log, audit trail and traces.

use std::sync::Arc;

use portcullis_endpoint::{EndedStream, StreamObserver};
use portcullis_guard::{Decision, DecisionSink};

use crate::{audit::Audit, telemetry::AccessLog, traces::Traces};

/// The access log, and the audit trail and the traces if they are configured.
#[derive(Clone)]
pub(super) struct Observers {
    pub(super) access: Arc<AccessLog>,
    pub(super) audit: Option<Audit>,
    pub(super) traces: Option<Traces>,
}

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

impl StreamObserver for Observers {
    fn ended(&self, stream: &EndedStream<'_>) {
        if let Some(audit) = &self.audit {
            audit.stream_ended(stream);
        }
    }
}
