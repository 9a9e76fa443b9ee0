use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{Method, Request, StatusCode, uri::PathAndQuery};
use portcullis_metadata::{EscapedText, ResourceUri, UnixTime};
use portcullis_verifier::{Principal, VerifiedToken};

use crate::{Caller, Operation, Peer, ProtectedResource, RequestId};

/// What became of one request, told when the head of its answer is known.
///
/// It holds neither the query nor any header nor the token.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Decision<'a> {
    /// The correlation id, the same that the client got in `X-Request-Id`.
    pub request_id: &'a RequestId,
    /// When the request came in.
    pub time: UnixTime,
    /// The request's method.
    pub method: &'a Method,
    /// The request's path, without the query.
    pub path: &'a str,
    /// The status of the answer. Where there was none: 499 when the client went away, 500 when the inner service failed,
    /// 503 when the server was shut down.
    pub status: StatusCode,
    /// Why the request was refused, as a stable code; `None` when it was not.
    pub code: Option<&'static str>,
    /// The code of a rule that only reports, and would have refused the request.
    pub report_only_denial: Option<&'static str>,
    /// What the request is about, where the service behind the guard read its body and said.
    pub operation: Option<&'a Operation>,
    /// Whom the token speaks for, where one was verified; also when the request was then refused.
    pub principal: Option<&'a Principal>,
    /// The client's address, where the server set [`Peer`]: the connection's other end or, where that is one of the
    /// [trusted proxies](crate::TrustedProxies), whom it was called by.
    pub client_address: Option<IpAddr>,
    /// The resource that was asked for.
    pub resource: &'a ResourceUri,
    /// From the request's arrival at the guard to the head of the answer.
    pub latency: Duration,
}

impl<'a> Decision<'a> {
    /// A decision about a request that was admitted and answered with `status`, for tests of a [`DecisionSink`]. All
    /// optional fields are `None` and the latency is zero.
    pub fn new(
        request_id: &'a RequestId,
        time: UnixTime,
        (method, path): (&'a Method, &'a str),
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
        }
    }
}

/// Takes each [`Decision`]: an access log, an audit trail, metrics.
pub trait DecisionSink: Send + Sync + 'static {
    /// Called exactly once for every request, refusals, preflights and metadata included, on the request's
    /// own task: it must not wait or panic.
    fn decided(&self, decision: &Decision<'_>);
}

/// A sink that writes one `tracing` event a request, at level info. `deny.code` says why it was refused. Paths, operations
/// and their targets are written as [`EscapedText`].
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

/// 499, as access logs write it: no answer was sent.
const CLIENT_GONE: u16 = 499;

/// One request's decision in the making. It is told once, at the latest when this is dropped.
pub(crate) struct Report {
    resource: Arc<ProtectedResource>,
    request_id: RequestId,
    time: UnixTime,
    started: Duration,
    method: Method,
    path: Option<PathAndQuery>,
    client_address: Option<IpAddr>,
    who: Who,
    told: bool,
}

/// Whose request it is, as far as that is known.
enum Who {
    Nobody,
    /// A token was verified, and the request refused.
    Refused(VerifiedToken),
    /// The request was handed on.
    Admitted(Caller),
}

impl Report {
    pub(crate) fn start<B>(resource: Arc<ProtectedResource>, request: &Request<B>) -> Self {
        Self {
            request_id: RequestId::generate(),
            time: resource.clock.now(),
            started: resource.clock.monotonic(),
            method: request.method().clone(),
            path: request.uri().path_and_query().cloned(),
            client_address: request
                .extensions()
                .get()
                .map(|Peer(peer)| resource.trusted_proxies.client(*peer, request.headers())),
            who: Who::Nobody,
            told: false,
            resource,
        }
    }

    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    pub(crate) fn resource(&self) -> &Arc<ProtectedResource> {
        &self.resource
    }

    pub(crate) fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    pub(crate) fn client_address(&self) -> Option<IpAddr> {
        self.client_address
    }

    pub(crate) fn refused(&mut self, verified: VerifiedToken) {
        self.who = Who::Refused(verified);
    }

    pub(crate) fn admitted(&mut self, caller: Caller) {
        self.who = Who::Admitted(caller);
    }

    pub(crate) fn tell(&mut self, status: StatusCode, code: Option<&'static str>) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let (principal, caller) = match &self.who {
            Who::Nobody => (None, None),
            Who::Refused(verified) => (Some(verified.principal()), None),
            Who::Admitted(caller) => (caller.principal(), Some(caller)),
        };
        self.resource.sink.decided(&Decision {
            request_id: &self.request_id,
            time: self.time,
            method: &self.method,
            path: self.path.as_ref().map_or("", PathAndQuery::path),
            status,
            code,
            report_only_denial: caller.and_then(Caller::report_only_denial),
            operation: caller.and_then(Caller::operation),
            principal,
            client_address: self.client_address,
            resource: self.resource.resource(),
            latency: self.resource.clock.monotonic().saturating_sub(self.started),
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let (status, code) = if std::thread::panicking() {
            (StatusCode::INTERNAL_SERVER_ERROR, "inner.panicked")
        } else if self.resource.is_shutting_down() {
            (StatusCode::SERVICE_UNAVAILABLE, "server.shutdown")
        } else {
            (StatusCode::from_u16(CLIENT_GONE).unwrap_or(StatusCode::REQUEST_TIMEOUT), "client.gone")
        };
        self.tell(status, Some(code));
    }
}
