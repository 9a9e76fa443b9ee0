//! The spans of one request.

use std::time::Duration;

use http::StatusCode;
use portcullis_guard::{Decision, Operation, RequestId, Timing, TraceContext};
use portcullis_metadata::{ResourceUri, UnixTime};

use crate::telemetry::{Effect, MAX_TEXT, truncated};

/// What the spans of one request consist of. It contains neither the query nor headers, nor the token and its principal.
pub(super) struct RequestSpan {
    pub(super) context: TraceContext,
    pub(super) request_id: RequestId,
    pub(super) time: UnixTime,
    pub(super) latency: Duration,
    pub(super) verification: Option<Timing>,
    pub(super) upstream: Option<Timing>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) status: StatusCode,
    pub(super) resource: ResourceUri,
    pub(super) effect: Effect,
    pub(super) code: Option<&'static str>,
    /// The JSON-RPC method.
    pub(super) operation: Option<String>,
    pub(super) tool: Option<String>,
}

impl RequestSpan {
    pub(super) fn new(context: TraceContext, decision: &Decision<'_>) -> Self {
        let bounded = |text: &str| truncated(text, MAX_TEXT).into_owned();
        Self {
            context,
            request_id: decision.request_id.clone(),
            time: decision.time,
            latency: decision.latency,
            verification: decision.verification,
            upstream: decision.upstream,
            method: bounded(decision.method.as_str()),
            path: bounded(decision.path),
            status: decision.status,
            resource: decision.resource.clone(),
            effect: Effect::of(decision.code),
            code: decision.code,
            operation: decision.operation.map(|operation| bounded(operation.name())),
            tool: decision.operation.and_then(Operation::tool).map(bounded),
        }
    }
}
