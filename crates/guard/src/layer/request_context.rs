//! [`RequestContext`]: the state of one request from its arrival to the head of its response.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION,
};
use portcullis_metadata::{AccessToken, EscapedText, syntax::is_event_stream};
use portcullis_verifier::{HeldToken, VerifiedToken, Verifier};

use super::{
    admission::{Admission, Rejected, RequestHead, rejected_token},
    body::GuardBody,
    decision_report::DecisionReport,
    unanswered::Unanswered,
};
use crate::{
    authenticate::{self, BearerCredentials, NoBearerToken, Verification},
    caller::{Caller, RejectionCode},
    cors::{self, AllowedOrigin},
    identity::Identity,
    limit::Permit,
    request_id::{RequestId, X_REQUEST_ID},
    resource::ProtectedResource,
    respond::{Limit, Rejection},
    settings::Authentication,
    superseded_request::SupersededRequest,
};

const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The state of one request: its decision report, the origin that may read the response, and its
/// permit.
pub(super) struct RequestContext {
    report: DecisionReport,
    allowed_origin: AllowedOrigin,
    /// Counts the request while it is in progress. It moves into the response body.
    permit: Option<Permit>,
    /// The `Authorization` of an admitted request, until its response, for a [new
    /// decision](Caller::poll_new_decision).
    credentials: Option<HeaderValue>,
    /// The verification for a new decision.
    verification: Option<Verification>,
}

impl RequestContext {
    /// Starts the state of a request that arrives now.
    pub(super) fn start<B>(resource: Arc<ProtectedResource>, request: &Request<B>) -> Self {
        let allowed_origin = resource.cors.allowed_origin(request.headers());
        let report = DecisionReport::start(resource, request);
        Self {
            report,
            allowed_origin,
            permit: None,
            credentials: None,
            verification: None,
        }
    }

    pub(super) fn resource(&self) -> &ProtectedResource {
        self.report.resource()
    }

    pub(super) fn request_id(&self) -> &RequestId {
        self.report.request_id()
    }

    /// Returns the parts of the request that the guard reads.
    pub(super) fn head<'a, B>(&self, request: &'a Request<B>) -> RequestHead<'a> {
        RequestHead::new(request, self.report.arrival(), self.report.client_address())
    }

    /// Prepares an admitted request for the inner service: removes the credentials and adds the
    /// request id and the [`Caller`].
    pub(super) fn admit<B>(&mut self, request: &mut Request<B>, admission: Admission) {
        let Admission {
            verified,
            report_only_denial,
            permit,
        } = admission;
        self.permit = permit;
        let held_token = verified
            .as_ref()
            .and_then(|verified| self.hold_introspected(verified, request.headers()));
        let headers = request.headers_mut();
        self.credentials = headers.remove(AUTHORIZATION);
        headers.remove(DPOP);
        headers.insert(X_REQUEST_ID, self.request_id().to_header_value());
        let caller = Caller::new(
            Identity {
                verified,
                held_token,
            },
            self.report.facts(),
        );
        if let Some(denial) = report_only_denial {
            caller.record().set_report_only_denial(denial.code());
        }
        request.extensions_mut().insert(caller.clone());
        self.report.set_admitted(caller);
    }

    /// Keeps the token of the request if its issuer introspects tokens, so that it can be checked
    /// again.
    fn hold_introspected(
        &self,
        verified: &VerifiedToken,
        headers: &HeaderMap,
    ) -> Option<HeldToken> {
        if !verified.principal().is_introspected() {
            return None;
        }
        let Authentication::Required(verifier) = &self.resource().authentication else {
            return None;
        };
        let token = BearerCredentials::read(headers)
            .and_then(BearerCredentials::unverified_token)
            .ok()?;
        verifier.hold(verified, token)
    }

    /// Makes the new decision that the service waits for, if it does. Ready when the service can go
    /// on, and pending if it waits for something else. Fails if the request is no longer admitted.
    pub(super) fn poll_new_decision(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Rejected>> {
        let Some(caller) = self
            .report
            .caller()
            .filter(|caller| caller.new_decision().is_wanted())
            .cloned()
        else {
            return Poll::Pending;
        };
        let identity = match self.resource().verifier().cloned() {
            Some(verifier) if caller.verified().is_some() => {
                let verified = ready!(self.poll_verified_again(&verifier, cx))?;
                self.admit_again(&verifier, verified)?
            }
            _ => Identity::default(),
        };
        caller.new_decision().admit(identity);
        Poll::Ready(Ok(()))
    }

    /// Verifies the token of an admitted request again, unless it is cached.
    fn poll_verified_again(
        &mut self,
        verifier: &Arc<Verifier>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<VerifiedToken, Rejected>> {
        let mut verification = match self.verification.take() {
            Some(verification) => verification,
            None => {
                let token = self
                    .token()
                    .map_err(|reason| Rejected::from(Rejection::NoBearerToken(reason)))?;
                if let Some(verified) = verifier.cached(token) {
                    return Poll::Ready(Ok(verified));
                }
                authenticate::verify(
                    Arc::clone(verifier),
                    AccessToken::new(token),
                    self.request_id(),
                )
            }
        };
        match verification.as_mut().poll(cx) {
            Poll::Ready(verified) => {
                Poll::Ready(verified.map_err(|error| rejected_token(error).into()))
            }
            Poll::Pending => {
                self.verification = Some(verification);
                Poll::Pending
            }
        }
    }

    /// Applies the rules to a token that was verified again.
    fn admit_again(
        &self,
        verifier: &Arc<Verifier>,
        verified: VerifiedToken,
    ) -> Result<Identity, Rejected> {
        let rules = &self.resource().rules;
        let authorized = rules.authorize(
            self.report.method(),
            self.report.path(),
            verified.principal(),
        );
        if let Err(reason) = authorized {
            let rejection = Rejection::not_authorized(reason, verified.principal());
            return Err(Rejected {
                rejection,
                verified: Some(verified),
            });
        }
        let held_token = self
            .token()
            .ok()
            .and_then(|token| verifier.hold(&verified, token));
        Ok(Identity {
            verified: Some(verified),
            held_token,
        })
    }

    /// Returns the token of an admitted request.
    fn token(&self) -> Result<&str, NoBearerToken> {
        let credentials = self.credentials.as_ref().ok_or(NoBearerToken::Missing)?;
        BearerCredentials::of_value(credentials).and_then(BearerCredentials::unverified_token)
    }

    /// Records that the verification of the token begins.
    pub(super) fn start_verification(&self) {
        self.report.start_verification();
    }

    /// Records that the verification of the token has ended.
    pub(super) fn end_verification(&self) {
        self.report.end_verification();
    }

    /// Builds and reports the response to a rejected request.
    pub(super) fn reject<B>(&mut self, rejected: Rejected) -> Response<GuardBody<B>> {
        let Rejected {
            rejection,
            verified,
        } = rejected;
        if let Some(verified) = verified {
            self.report.set_rejected(verified);
        }
        if matches!(rejection, Rejection::Origin(_)) {
            // A rejected origin cannot read the response.
            self.allowed_origin = AllowedOrigin::None;
        }
        let rejection = self.limited(rejection);
        self.log_missing_scopes(&rejection);
        let resource = self.resource();
        let response = rejection.response(
            resource.challenges(),
            resource.limits.exceeded_body.as_ref(),
        );
        self.respond(response, Some(rejection.code()))
    }

    /// Counts a request without a valid token, and rejects it as such unless its address has sent
    /// too many of them. A request that was admitted before is not counted.
    fn limited(&self, rejection: Rejection) -> Rejection {
        let limiter = self
            .resource()
            .limits
            .rejected_per_address
            .as_ref()
            .filter(|_| rejection.lacks_valid_token() && self.report.caller().is_none());
        match limiter.map(|limiter| limiter.check_address(self.report.client_address())) {
            Some(Err(exceeded)) => Rejection::LimitExceeded {
                limit: Limit::Rejected,
                exceeded,
            },
            _ => rejection,
        }
    }

    /// Logs the scopes of a request that lacks some, because neither the client nor the decision
    /// learns them all.
    fn log_missing_scopes(&self, rejection: &Rejection) {
        let Rejection::InsufficientScope { needed, granted } = rejection else {
            return;
        };
        tracing::debug!(
            request.id = self.request_id().as_str(),
            deny.code = rejection.code(),
            scope.required = %needed,
            scope.granted = %EscapedText(granted.as_str()),
            "the token lacks scopes"
        );
    }

    /// Completes and reports a response of the guard itself. `code` is the reason code of a
    /// rejection.
    pub(super) fn respond<B>(
        &mut self,
        response: Response<Option<Bytes>>,
        code: Option<&'static str>,
    ) -> Response<GuardBody<B>> {
        let mut response = response.map(|body| body.map_or_else(GuardBody::empty, GuardBody::full));
        self.add_headers(response.headers_mut());
        self.report.send(response.status(), code);
        response
    }

    /// Completes and reports the response of the inner service.
    ///
    /// A GET whose event stream exceeds the limit is answered 429 instead. An unsafe method, such
    /// as POST, has been executed already, so its stream is passed on and counts as a request in
    /// progress.
    pub(super) fn pass<B>(&mut self, mut response: Response<B>) -> Response<GuardBody<B>> {
        if self.resource().is_superseded()
            && let Some(SupersededRequest(request)) = response.extensions_mut().get_mut()
        {
            request.headers_mut().extend(
                self.credentials
                    .take()
                    .map(|credentials| (AUTHORIZATION, credentials)),
            );
            self.report.discard();
            // The new settings may share the limit of this request.
            self.permit = None;
            return response.map(|body| GuardBody::inner(body, None));
        }
        let permit = match self.permit.take() {
            Some(permit) if is_event_stream(response.headers()) => match permit.into_stream() {
                Ok(permit) => Some(permit),
                Err((permit, _)) if !self.report.method().is_safe() => Some(permit),
                Err((_, exceeded)) => {
                    return self.reject(
                        Rejection::LimitExceeded {
                            limit: Limit::Streams,
                            exceeded,
                        }
                        .into(),
                    );
                }
            },
            permit => permit,
        };
        let mut response = response.map(|body| GuardBody::inner(body, permit));
        let code = response.extensions_mut().remove::<RejectionCode>();
        cors::strip(response.headers_mut());
        self.add_headers(response.headers_mut());
        self.report.send(response.status(), code.map(|code| code.0));
        response
    }

    /// Reports that the inner service failed without a response.
    pub(super) fn fail(&mut self) {
        self.report.send(
            StatusCode::INTERNAL_SERVER_ERROR,
            Some(Unanswered::Failed.code()),
        );
    }

    /// Adds the headers of every response: CORS and the request id.
    fn add_headers(&self, headers: &mut HeaderMap) {
        self.resource()
            .cors
            .add_headers(&self.allowed_origin, headers);
        headers.insert(X_REQUEST_ID, self.request_id().to_header_value());
    }
}
