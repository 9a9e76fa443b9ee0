use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header::AUTHORIZATION};
use portcullis_metadata::is_event_stream;
use portcullis_verifier::{HeldToken, VerifiedToken};

use crate::{
    Authentication, Caller, ClaimDenial, GuardBody, ProtectedResource, RejectionCode, RequestId,
    bearer::Presented,
    cors::{self, Reader},
    decision::Report,
    judge::Head,
    limit::Permit,
    request_id::X_REQUEST_ID,
    respond::Refusal,
};

const DPOP: HeaderName = HeaderName::from_static("dpop");

/// One request and its answer: what the guard has to remember between the two.
pub(crate) struct Exchange {
    report: Report,
    reader: Reader,
    /// Counts the request while it is in progress. The response's body takes it over.
    permit: Option<Permit>,
}

impl Exchange {
    pub(crate) fn start<B>(resource: Arc<ProtectedResource>, request: &Request<B>) -> Self {
        let reader = resource.cors.reader(request.headers());
        Self { report: Report::start(resource, request), reader, permit: None }
    }

    pub(crate) fn resource(&self) -> &ProtectedResource {
        self.report.resource()
    }

    pub(crate) fn request_id(&self) -> &RequestId {
        self.report.request_id()
    }

    /// What the guard reads of a request.
    pub(crate) fn head<'a, B>(&self, request: &'a Request<B>) -> Head<'a> {
        Head::new(request, self.report.client_address())
    }

    /// Makes a request ready for the inner service.
    pub(crate) fn admit<B>(
        &mut self,
        request: &mut Request<B>,
        verified: Option<VerifiedToken>,
        report_only_denial: Option<ClaimDenial>,
        permit: Option<Permit>,
    ) {
        self.permit = permit;
        let request_id = self.request_id().clone();
        let held_token = verified.as_ref().and_then(|verified| self.hold_introspected(verified, request.headers()));
        let headers = request.headers_mut();
        headers.remove(AUTHORIZATION);
        headers.remove(DPOP);
        headers.insert(X_REQUEST_ID, request_id.to_header_value());
        let caller = Caller::new(verified, held_token, request_id, self.report.client_address());
        if let Some(unmet) = report_only_denial {
            caller.record_report_only_denial(unmet.code());
        }
        request.extensions_mut().insert(caller.clone());
        self.report.admitted(caller);
    }

    /// Keeps the presented token, where its issuer is asked about it.
    fn hold_introspected(&self, verified: &VerifiedToken, headers: &HeaderMap) -> Option<HeldToken> {
        if !verified.principal().is_introspected() {
            return None;
        }
        let Authentication::Required(verifier) = &self.resource().authentication else { return None };
        let token = Presented::read(headers).and_then(Presented::unverified_token).ok()?;
        verifier.hold(verified, token)
    }

    pub(crate) fn refuse<B>(&mut self, refusal: &Refusal, verified: Option<VerifiedToken>) -> Response<GuardBody<B>> {
        if let Some(verified) = verified {
            self.report.refused(verified);
        }
        if matches!(refusal, Refusal::Origin(_)) {
            // A page that may not ask may not read either.
            self.reader = Reader::Nobody;
        }
        let response = refusal.response(self.resource().challenges());
        self.answer(response, Some(refusal.code()))
    }

    /// An answer of the guard itself, finished and reported.
    pub(crate) fn answer<B>(
        &mut self,
        response: Response<Option<Bytes>>,
        code: Option<&'static str>,
    ) -> Response<GuardBody<B>> {
        let mut response = response.map(|body| body.map_or_else(GuardBody::empty, GuardBody::full));
        self.decorate(response.headers_mut());
        self.report.tell(response.status(), code);
        response
    }

    /// The inner service's response, finished and reported. A GET whose event stream exceeds the limit gets 429 instead. A
    /// POST has been executed by now, so its stream is passed on and counts as a request in progress.
    pub(crate) fn pass<B>(&mut self, response: Response<B>) -> Response<GuardBody<B>> {
        let permit = match self.permit.take() {
            Some(permit) if is_event_stream(response.headers()) => match permit.into_stream() {
                Ok(permit) => Some(permit),
                Err((permit, _)) if self.report.method() == Method::POST => Some(permit),
                Err((_, limited)) => {
                    return self.refuse(&Refusal::LimitExceeded { code: "limit.streams", limited }, None);
                }
            },
            permit => permit,
        };
        let mut response = response.map(|body| GuardBody::inner(body, permit));
        let code = response.extensions_mut().remove::<RejectionCode>();
        cors::strip(response.headers_mut());
        self.decorate(response.headers_mut());
        self.report.tell(response.status(), code.map(|code| code.0));
        response
    }

    /// The inner service failed without an answer.
    pub(crate) fn fail(&mut self) {
        self.report.tell(StatusCode::INTERNAL_SERVER_ERROR, Some("inner.failed"));
    }

    fn decorate(&self, headers: &mut HeaderMap) {
        self.resource().cors.decorate(&self.reader, headers);
        headers.insert(X_REQUEST_ID, self.request_id().to_header_value());
    }
}
