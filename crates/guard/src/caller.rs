//! [`Caller`]: the identity that the guard attaches to an admitted request.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use portcullis_verifier::{HeldToken, Principal, VerifiedToken};

use crate::{
    decision::{Operation, Stopwatch, Timing},
    request_id::RequestId,
    trace::TraceContext,
};

/// The sender of an admitted request: a request extension that only the guard creates.
///
/// Its presence proves that the guard checked the request. It does not reveal the token. Clones share what is
/// [recorded](Self::record_operation) through them.
///
/// ```
/// use http::Request;
/// use portcullis_guard::{Caller, Operation};
///
/// fn handle<B>(request: &Request<B>) -> String {
///     let Some(caller) = request.extensions().get::<Caller>() else {
///         return "not behind a guard".to_owned();
///     };
///     caller.record_operation(Operation::new("reports/list", None));
///     let subject = caller.principal().and_then(|principal| principal.subject());
///     format!("hello {}", subject.unwrap_or("unknown"))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Caller(Arc<CallerInner>);

/// What the clones of a caller share.
#[derive(Debug)]
struct CallerInner {
    verified: Option<VerifiedToken>,
    held_token: Option<HeldToken>,
    request_id: RequestId,
    client_address: Option<IpAddr>,
    trace: Option<TraceContext>,
    operation: OnceLock<Operation>,
    report_only_denial: OnceLock<&'static str>,
    upstream: Stopwatch,
}

/// What is known of a request before its token is verified.
pub(crate) struct RequestFacts {
    pub(crate) request_id: RequestId,
    pub(crate) client_address: Option<IpAddr>,
    pub(crate) trace: Option<TraceContext>,
}

impl Caller {
    /// Creates the sender of an admitted request.
    pub(crate) fn new(verified: Option<VerifiedToken>, held_token: Option<HeldToken>, facts: RequestFacts) -> Self {
        let RequestFacts { request_id, client_address, trace } = facts;
        Self(Arc::new(CallerInner {
            verified,
            held_token,
            request_id,
            client_address,
            trace,
            operation: OnceLock::new(),
            report_only_denial: OnceLock::new(),
            upstream: Stopwatch::default(),
        }))
    }

    /// Returns the trace context, if [traces](crate::GuardSettings::traces) are on. A gateway sends its
    /// [`upstream_traceparent`](TraceContext::upstream_traceparent) in place of the client's.
    pub fn trace(&self) -> Option<TraceContext> {
        self.0.trace
    }

    /// Records when the request is passed to an upstream, for [`Decision::upstream`](crate::Decision::upstream). Only
    /// the first call has an effect. `now` is the monotonic time of the guard's [clock](crate::GuardSettings::clock).
    pub fn record_upstream_start(&self, now: Duration) {
        self.0.upstream.start(now);
    }

    /// Records when the head of the upstream's response is known, by the same clock. The last call counts.
    pub fn record_upstream_end(&self, now: Duration) {
        self.0.upstream.end(now);
    }

    /// Returns the time of the upstream for a request that arrived at `arrival`, if it was recorded.
    pub(crate) fn upstream(&self, arrival: Duration, now: Duration) -> Option<Timing> {
        self.0.upstream.timing(arrival, now)
    }

    /// Returns the principal of the token. `None` only if authentication is [off](crate::Authentication::Off) or the
    /// path is [public](crate::GuardSettings::public_paths).
    pub fn principal(&self) -> Option<&Principal> {
        self.verified().map(VerifiedToken::principal)
    }

    /// Returns the evidence that the token was verified. `None` if there is no [principal](Self::principal).
    pub fn verified(&self) -> Option<&VerifiedToken> {
        self.0.verified.as_ref()
    }

    /// Returns the token of the request if its issuer introspects tokens, so that a service with long responses can
    /// have it checked again. `None` if the token is verified by its signature alone, and if there is no
    /// [principal](Self::principal).
    pub fn held_token(&self) -> Option<&HeldToken> {
        self.0.held_token.as_ref()
    }

    /// Returns the request id.
    pub fn request_id(&self) -> &RequestId {
        &self.0.request_id
    }

    /// Returns the client's address, as in [`Decision::client_address`](crate::Decision::client_address). `None` if the
    /// server does not set [`Peer`](crate::Peer).
    pub fn client_address(&self) -> Option<IpAddr> {
        self.0.client_address
    }

    /// Returns what the request asks for, if it was [recorded](Self::record_operation).
    pub fn operation(&self) -> Option<&Operation> {
        self.0.operation.get()
    }

    /// Records what the request asks for, for the [`Decision`](crate::Decision). Only the first call has an effect.
    pub fn record_operation(&self, operation: Operation) {
        self.0.operation.get_or_init(|| operation);
    }

    /// Records the stable code of a denial by a report-only rule, for the [`Decision`](crate::Decision). Only the first
    /// call has an effect.
    pub fn record_report_only_denial(&self, code: &'static str) {
        self.0.report_only_denial.get_or_init(|| code);
    }

    /// Returns the code of the denial that was recorded.
    pub(crate) fn report_only_denial(&self) -> Option<&'static str> {
        self.0.report_only_denial.get().copied()
    }
}

/// The stable code of a rejection by an inner service: a response extension. The guard removes it and reports it in its
/// [`Decision`](crate::Decision), so that it does not reach the client.
///
/// ```
/// use http::{Response, StatusCode};
/// use portcullis_guard::RejectionCode;
///
/// fn quota_exceeded() -> Response<String> {
///     let mut response = Response::new("the quota is used up".to_owned());
///     *response.status_mut() = StatusCode::FORBIDDEN;
///     response.extensions_mut().insert(RejectionCode("reports.quota"));
///     response
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectionCode(pub &'static str);
