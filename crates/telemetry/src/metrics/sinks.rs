use std::{sync::Arc, time::Duration};

use portcullis_guard::{Decision, DecisionSink};
use portcullis_verifier::VerificationObserver;

use super::requests::ResourceMetrics;

/// Counts the requests to one resource, and passes the decisions on.
pub struct MeasuredRequests<S> {
    /// The sink that gets the decisions as well.
    pub inner: Arc<S>,
    /// The counts.
    pub metrics: Arc<ResourceMetrics>,
}

impl<S: DecisionSink> DecisionSink for MeasuredRequests<S> {
    fn decided(&self, decision: &Decision<'_>) {
        self.metrics.of_this_thread().decided(decision);
        self.inner.decided(decision);
    }
}

/// Counts the verifications of the tokens of one resource.
#[derive(Debug)]
pub struct MeasuredTokens(pub Arc<ResourceMetrics>);

impl VerificationObserver for MeasuredTokens {
    fn cached(&self) {
        self.0.of_this_thread().cached();
    }

    fn verified(&self, elapsed: Duration) {
        self.0.of_this_thread().verified(elapsed);
    }
}
