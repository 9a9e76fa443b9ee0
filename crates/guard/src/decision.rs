mod operation;
mod request_record;
mod timing;

use std::{net::IpAddr, time::Duration};

use http::{Method, StatusCode};
use portcullis_metadata::{EscapedText, ResourceUri, UnixTime};
use portcullis_verifier::Principal;

pub(crate) use self::timing::Stopwatch;
pub use self::{operation::Operation, request_record::RequestRecord, timing::Timing};
use crate::{request_id::RequestId, trace::TraceContext};

/// What the guard decided about one request. It is reported when the head of the response is known.
///
/// It contains neither the query nor headers nor the token.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Decision<'a> {
    /// The request id that the client receives in `X-Request-Id`.
    pub request_id: &'a RequestId,
    /// The time when the request arrived.
    pub time: UnixTime,
    /// The request's method.
    pub method: &'a Method,
    /// The request's path, without the query.
    pub path: &'a str,
    /// The status of the response. Without a response: 499 if the client disconnected, 500 if the
    /// inner service failed, 503 if the server was shut down.
    pub status: StatusCode,
    /// The stable code of the rejection; `None` if the request was not rejected.
    pub code: Option<&'static str>,
    /// The stable code of the first denial by a report-only rule, which did not reject the request.
    /// It can be `None` if the request was rejected.
    pub report_only_denial: Option<&'static str>,
    /// What the request asked for, if the inner service [recorded](RequestRecord::set_operation)
    /// it.
    pub operation: Option<&'a Operation>,
    /// The principal of the token, if one was verified. It is also present if the request was
    /// rejected afterwards.
    pub principal: Option<&'a Principal>,
    /// The client's address, if the server set [`Peer`](crate::Peer): the address of the peer, or
    /// behind a [trusted proxy](crate::TrustedProxies) the address that the proxy reports.
    pub client_address: Option<IpAddr>,
    /// The requested resource.
    pub resource: &'a ResourceUri,
    /// The time from the arrival of the request to the head of the response.
    pub latency: Duration,
    /// The wait for the verification of the token. `None` if the token was cached, there is none,
    /// or [traces](crate::GuardSettings::traces) are off.
    pub verification: Option<Timing>,
    /// The time of the inner service's upstream until the head of its response, if the inner
    /// service [measured](RequestRecord::upstream_starts) it.
    pub upstream: Option<Timing>,
    /// The trace context, if [traces](crate::GuardSettings::traces) are on.
    pub trace: Option<TraceContext>,
}

impl<'a> Decision<'a> {
    /// Creates a decision about an admitted request, for tests of a [`DecisionSink`]. All optional
    /// fields are `None`, and the latency is zero.
    pub fn new(
        request_id: &'a RequestId,
        time: UnixTime,
        method: &'a Method,
        path: &'a str,
        status: StatusCode,
        resource: &'a ResourceUri,
    ) -> Self {
        Self {
            request_id,
            time,
            method,
            path,
            status,
            code: None,
            report_only_denial: None,
            operation: None,
            principal: None,
            client_address: None,
            resource,
            latency: Duration::ZERO,
            verification: None,
            upstream: None,
            trace: None,
        }
    }
}

/// Receives the [`Decision`] about each request, for example for an access log, an audit trail or
/// metrics.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use portcullis_guard::{Decision, DecisionSink};
///
/// /// Counts rejected requests.
/// #[derive(Default)]
/// struct Rejections(AtomicU64);
///
/// impl DecisionSink for Rejections {
///     fn decided(&self, decision: &Decision<'_>) {
///         if decision.code.is_some() {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait DecisionSink: Send + Sync + 'static {
    /// Called exactly once per request, including rejected requests, preflights and metadata
    /// requests. It runs on the task of the request, so it must not block or panic.
    fn decided(&self, decision: &Decision<'_>);
}

/// A sink that emits one `tracing` event per request at level info. `deny.code` is the code of the
/// rejection, and `spared.code` that of a [report-only denial](Decision::report_only_denial).
/// Paths, operations and targets are escaped by [`EscapedText`].
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingSink;

impl DecisionSink for TracingSink {
    fn decided(&self, decision: &Decision<'_>) {
        tracing::info!(
            request.id = decision.request_id.as_str(),
            request.method = decision.method.as_str(),
            request.path = %EscapedText(decision.path),
            resource = decision.resource.as_str(),
            status = decision.status.as_u16(),
            deny.code = decision.code,
            spared.code = decision.report_only_denial,
            operation = decision.operation.map(Operation::name).map(EscapedText).map(display),
            operation.target = decision.operation.and_then(Operation::target).map(EscapedText).map(display),
            token.issuer = decision.principal.map(|principal| principal.issuer().as_str()),
            latency_us = u64::try_from(decision.latency.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
    }
}
