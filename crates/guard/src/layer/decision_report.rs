//! [`DecisionReport`]: collects the decision about a request and sends it to the sink.

use std::{net::IpAddr, sync::Arc};

use http::{Method, Request, StatusCode, uri::PathAndQuery};
use portcullis_metadata::Now;
use portcullis_verifier::VerifiedToken;

use super::unanswered::Unanswered;
use crate::{
    caller::{Caller, RequestFacts},
    client_address::Peer,
    decision::{Decision, RequestRecord, Stopwatch},
    request_id::RequestId,
    resource::ProtectedResource,
    trace::TraceContext,
};

/// The status 499 that access logs use for a client that disconnected before the response.
const CLIENT_GONE: u16 = 499;

/// Collects the decision about one request and sends it once, at the latest when it is dropped.
pub(super) struct DecisionReport {
    resource: Arc<ProtectedResource>,
    request_id: RequestId,
    /// The time of the arrival.
    arrival: Now,
    method: Method,
    path: Option<PathAndQuery>,
    client_address: Option<IpAddr>,
    trace: Option<TraceContext>,
    verification: Stopwatch,
    identity: Identity,
    is_sent: bool,
}

/// The sender, as far as it is known.
enum Identity {
    /// No token was verified.
    Unknown,
    /// The token was verified, and the request was rejected.
    Rejected(VerifiedToken),
    /// The request was admitted.
    Admitted(Caller),
}

impl DecisionReport {
    /// Starts the report of a request that arrives now, with a new request id.
    pub(super) fn start<B>(resource: Arc<ProtectedResource>, request: &Request<B>) -> Self {
        let request_id = RequestId::generate();
        let trace = resource
            .traces
            .map(|traces| traces.context(&request_id, request.headers()));
        Self {
            request_id,
            trace,
            verification: Stopwatch::default(),
            arrival: resource.clock.read(),
            method: request.method().clone(),
            path: request.uri().path_and_query().cloned(),
            client_address: request
                .extensions()
                .get()
                .map(|Peer(peer)| resource.trusted_proxies.client(*peer, request.headers())),
            identity: Identity::Unknown,
            is_sent: false,
            resource,
        }
    }

    /// Returns the request's method.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the requested resource.
    pub(super) fn resource(&self) -> &Arc<ProtectedResource> {
        &self.resource
    }

    pub(super) fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// Returns the time of the arrival.
    pub(super) fn arrival(&self) -> Now {
        self.arrival
    }

    /// Returns the client's address, if the server set the peer's.
    pub(super) fn client_address(&self) -> Option<IpAddr> {
        self.client_address
    }

    /// Returns what is known of the request before its token is verified.
    pub(super) fn facts(&self) -> RequestFacts {
        RequestFacts {
            resource: Arc::clone(&self.resource),
            arrival: self.arrival.monotonic,
            request_id: self.request_id.clone(),
            client_address: self.client_address,
            trace: self.trace,
        }
    }

    /// Returns the path of the request.
    pub(super) fn path(&self) -> &str {
        self.path.as_ref().map_or("", PathAndQuery::path)
    }

    /// Returns the sender, if the request was admitted.
    pub(super) fn caller(&self) -> Option<&Caller> {
        match &self.identity {
            Identity::Admitted(caller) => Some(caller),
            Identity::Unknown | Identity::Rejected(_) => None,
        }
    }

    /// Sends nothing: another report will have the decision.
    pub(super) fn discard(&mut self) {
        self.is_sent = true;
    }

    /// Records that the verification of the token begins now, for a trace.
    pub(super) fn start_verification(&self) {
        if self.trace.is_some() {
            self.verification.start(self.resource.clock.monotonic());
        }
    }

    /// Records that the verification of the token has ended, for a trace.
    pub(super) fn end_verification(&self) {
        if self.trace.is_some() {
            self.verification.end(self.resource.clock.monotonic());
        }
    }

    /// Records the token of a request that is rejected although the token is valid.
    pub(super) fn set_rejected(&mut self, verified: VerifiedToken) {
        self.identity = Identity::Rejected(verified);
    }

    /// Records the sender of an admitted request.
    pub(super) fn set_admitted(&mut self, caller: Caller) {
        self.identity = Identity::Admitted(caller);
    }

    /// Sends the decision to the sink. `code` is the reason code of a rejection. Only the first
    /// call has an effect.
    pub(super) fn send(&mut self, status: StatusCode, code: Option<&'static str>) {
        if std::mem::replace(&mut self.is_sent, true) {
            return;
        }
        let (principal, record) = match &self.identity {
            Identity::Unknown => (None, None),
            Identity::Rejected(verified) => (Some(verified.principal()), None),
            Identity::Admitted(caller) => (caller.principal(), Some(caller.record())),
        };
        let started = self.arrival.monotonic;
        let now = self.resource.clock.monotonic();
        self.resource.sink.decided(&Decision {
            request_id: &self.request_id,
            time: self.arrival.unix,
            method: &self.method,
            path: self.path(),
            status,
            code,
            report_only_denial: record.and_then(RequestRecord::report_only_denial),
            operation: record.and_then(RequestRecord::operation),
            principal,
            client_address: self.client_address,
            resource: self.resource.resource(),
            latency: now.saturating_sub(started),
            verification: self.verification.timing(started, now),
            upstream: record.and_then(|record| record.upstream(started, now)),
            trace: self.trace,
        });
    }
}

/// Reports a request whose future was dropped before there was a response.
impl Drop for DecisionReport {
    fn drop(&mut self) {
        let (status, reason) = if std::thread::panicking() {
            (StatusCode::INTERNAL_SERVER_ERROR, Unanswered::Panicked)
        } else if self.resource.is_shutting_down() {
            (StatusCode::SERVICE_UNAVAILABLE, Unanswered::Shutdown)
        } else {
            (
                StatusCode::from_u16(CLIENT_GONE).unwrap_or(StatusCode::REQUEST_TIMEOUT),
                Unanswered::ClientGone,
            )
        };
        self.send(status, Some(reason.code()));
    }
}
