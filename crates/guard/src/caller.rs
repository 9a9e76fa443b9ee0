//! [`Caller`]: the identity that the guard attaches to an admitted request.

use std::{net::IpAddr, sync::Arc, task::Poll, time::Duration};

use portcullis_verifier::{HeldToken, Principal, VerifiedToken};

use crate::{
    decision::RequestRecord, identity::Identity, limit::Permit, new_decision::NewDecision,
    request_id::RequestId, resource::ProtectedResource, trace::TraceContext,
};

/// The sender of an admitted request: a request extension that only the guard creates.
///
/// Its presence proves that the guard checked the request. It does not reveal the token. Clones
/// share what is [recorded](Self::record) through them. With the feature `axum`, it is an
/// extractor.
///
/// ```
/// use http::Request;
/// use portcullis_guard::{Caller, Operation};
///
/// fn handle<B>(request: &Request<B>) -> String {
///     let Some(caller) = request.extensions().get::<Caller>() else {
///         return "not behind a guard".to_owned();
///     };
///     caller.record().set_operation(Operation::new("reports/list", None));
///     format!("hello {}", caller.subject().unwrap_or("unknown"))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Caller(Arc<CallerInner>);

/// What the clones of a caller share.
#[derive(Debug)]
struct CallerInner {
    identity: Identity,
    resource: Arc<ProtectedResource>,
    new_decision: NewDecision,
    request_id: RequestId,
    client_address: Option<IpAddr>,
    trace: Option<TraceContext>,
    record: RequestRecord,
}

/// What is known of a request before its token is verified.
pub(crate) struct RequestFacts {
    pub(crate) resource: Arc<ProtectedResource>,
    /// The time of the arrival, by the monotonic clock.
    pub(crate) arrival: Duration,
    pub(crate) request_id: RequestId,
    pub(crate) client_address: Option<IpAddr>,
    pub(crate) trace: Option<TraceContext>,
}

impl Caller {
    /// Creates the sender of an admitted request.
    pub(crate) fn new(identity: Identity, facts: RequestFacts) -> Self {
        let RequestFacts {
            resource,
            arrival,
            request_id,
            client_address,
            trace,
        } = facts;
        Self(Arc::new(CallerInner {
            identity,
            resource,
            new_decision: NewDecision::after(arrival),
            request_id,
            client_address,
            trace,
            record: RequestRecord::default(),
        }))
    }

    /// Returns the trace context, if [traces](crate::GuardSettings::traces) are on. A gateway sends
    /// its [`upstream_traceparent`](TraceContext::upstream_traceparent) in place of the client's.
    pub fn trace(&self) -> Option<TraceContext> {
        self.0.trace
    }

    /// Returns the principal of the token. `None` only if authentication is
    /// [off](crate::Authentication::Off) or the path is
    /// [public](crate::GuardSettings::public_paths).
    pub fn principal(&self) -> Option<&Principal> {
        self.verified().map(VerifiedToken::principal)
    }

    /// Returns the subject of the token, as its issuer names it. `None` if there is no
    /// [principal](Self::principal), or if it has no subject, as a client that acts for itself can
    /// have none. Another issuer can give the same subject to someone else.
    pub fn subject(&self) -> Option<&str> {
        self.principal().and_then(Principal::subject)
    }

    /// Returns the evidence that the token was verified. `None` if there is no
    /// [principal](Self::principal).
    pub fn verified(&self) -> Option<&VerifiedToken> {
        self.identity().verified.as_ref()
    }

    /// Returns the token of the request if its issuer introspects tokens, so that a service with
    /// long responses can have it checked again. `None` if the token is verified by its signature
    /// alone, and if there is no [principal](Self::principal).
    pub fn held_token(&self) -> Option<&HeldToken> {
        self.identity().held_token.as_ref()
    }

    /// Returns the token of the latest decision.
    fn identity(&self) -> &Identity {
        self.0.new_decision.identity().unwrap_or(&self.0.identity)
    }

    /// Returns whether the decision is more than a second old, or of [settings that were
    /// replaced](crate::ProtectedResource::mark_superseded). It reads the guard's
    /// [clock](crate::GuardSettings::clock).
    ///
    /// A service that waits for something before it acts, such as the rest of a slow body, asks
    /// this first, and then for a [new decision](Self::poll_new_decision): meanwhile the token may
    /// have expired or been revoked.
    pub fn needs_new_decision(&self) -> bool {
        self.is_superseded()
            || self
                .0
                .new_decision
                .is_due(self.0.resource.clock.monotonic())
    }

    /// Returns whether the settings of the resource were replaced after the decision.
    pub fn is_superseded(&self) -> bool {
        self.0.resource.is_superseded()
    }

    /// Asks the guard to verify the token again and to apply its rules to the result. It is ready
    /// when the guard has admitted the request again: [`principal`](Self::principal) is then the
    /// new one. If the guard rejects the request, it drops the service's future and responds
    /// itself.
    ///
    /// It must be polled within the response future of the guarded service, which the guard polls;
    /// no waker is needed. There is at most one new decision about a request. Rates are not counted
    /// again, and settings that were replaced still apply.
    pub fn poll_new_decision(&self) -> Poll<()> {
        self.0.new_decision.poll()
    }

    /// Counts the request as one in progress of its principal until the returned value is dropped,
    /// for a service that continues it after the client has disconnected. Returns `None` if such
    /// requests are not limited, or there is no principal.
    ///
    /// Call it when the future of the response, or its body, is dropped: the guard drops its own
    /// count after those, so that the request is counted without a gap. The limit is not checked,
    /// but other requests of the principal count this one.
    pub fn continue_request(&self) -> Option<ContinuedRequest> {
        let limiter = self.0.resource.limits.in_flight.as_ref()?;
        Some(ContinuedRequest {
            _permit: limiter.continue_request(self.principal()?),
        })
    }

    /// Returns what the service asks of the guard.
    pub(crate) fn new_decision(&self) -> &NewDecision {
        &self.0.new_decision
    }

    /// Returns the request id.
    pub fn request_id(&self) -> &RequestId {
        &self.0.request_id
    }

    /// Returns the client's address, as in
    /// [`Decision::client_address`](crate::Decision::client_address). `None` if the server does not
    /// set [`Peer`](crate::Peer).
    pub fn client_address(&self) -> Option<IpAddr> {
        self.0.client_address
    }

    /// Returns where a service behind the guard records what it does with the request, for the
    /// [`Decision`](crate::Decision).
    pub fn record(&self) -> &RequestRecord {
        &self.0.record
    }
}

/// Counts a request that continues without its client. See [`Caller::continue_request`].
#[derive(Debug)]
pub struct ContinuedRequest {
    _permit: Permit,
}

/// The stable code of a rejection by an inner service: a response extension. The guard removes it
/// and reports it in its [`Decision`](crate::Decision), so that it does not reach the client.
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
