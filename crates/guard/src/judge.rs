use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use portcullis_metadata::{AccessToken, has_access_token_parameter};
use portcullis_verifier::{VerifiedToken, Verifier, VerifyError};

use crate::{
    Authentication, ClaimDenial, LimitExceeded, ProtectedResource,
    authorize::{Authorized, NotAuthorized},
    bearer::Presented,
    cors,
    document::Outcome,
    limit::Permit,
    respond::Refusal,
};

/// What the guard reads of a request: everything but its body, and the client's address.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    method: &'a Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
    client: Option<IpAddr>,
}

impl<'a> Head<'a> {
    pub(crate) fn new<B>(request: &'a Request<B>, client: Option<IpAddr>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            client,
        }
    }
}

/// What to do with a request.
pub(crate) enum Judgement {
    /// Hand it on without a token: authentication is off, or the path is public.
    AdmitAnyone,
    /// Its token is known.
    Judged(Admission),
    /// Verify this token first, then ask [`judge_verified`].
    Verify(Arc<Verifier>, AccessToken),
    /// Refuse it; no token was looked at, or none accepted.
    Refuse(Refusal),
    /// The guard itself has the answer.
    Answer(Response<Option<Bytes>>),
}

/// What to do with a request whose token was judged.
pub(crate) enum Admission {
    /// Hand it on; `report_only_denial` says why a rule would have refused it that only reports, and `permit` counts it while it is in
    /// progress, where that is limited.
    Admit { verified: VerifiedToken, report_only_denial: Option<ClaimDenial>, permit: Option<Permit> },
    /// Refuse it, although the token may be good.
    Refuse(Refusal, Option<VerifiedToken>),
}

/// Takes a request through the steps in their order, as far as that goes without waiting.
pub(crate) fn judge(resource: &ProtectedResource, head: Head<'_>) -> Judgement {
    if let Err(refused) = resource.origins.check(head.version, head.uri, head.headers) {
        return Judgement::Refuse(Refusal::Origin(refused));
    }
    if resource.document.is_at(head.uri.path()) {
        return judge_metadata(resource, head);
    }
    if cors::is_preflight(head.method, head.headers) {
        return Judgement::Answer(resource.cors.preflight(head.headers));
    }
    if let Some(limiter) = &resource.limits.per_address
        && let Err(limited) = limiter.check_address(head.client)
    {
        return Judgement::Refuse(Refusal::LimitExceeded { code: "limit.address", limited });
    }
    let token_in_query = has_token_in_query(head.uri);
    let verifier = match &resource.authentication {
        Authentication::Required(verifier) if !resource.is_public(head.uri.path()) => verifier,
        _ if token_in_query => return Judgement::Refuse(Refusal::QueryTokenBeside),
        _ => return Judgement::AdmitAnyone,
    };
    let presented = Presented::read(head.headers);
    // A token that was accepted before needs no second look at its form.
    if let Some(verified) = presented.ok().and_then(|presented| verifier.cached(presented.as_bytes())) {
        return Judgement::Judged(authorize(resource, head, verified));
    }
    match presented.and_then(Presented::unverified_token) {
        Ok(token) => Judgement::Verify(Arc::clone(verifier), AccessToken::new(token)),
        Err(_) if token_in_query => Judgement::Refuse(Refusal::QueryToken),
        Err(reason) => Judgement::Refuse(Refusal::NoBearer(reason)),
    }
}

/// The steps after a verification that had to wait.
pub(crate) fn judge_verified(
    resource: &ProtectedResource,
    head: Head<'_>,
    verified: Result<VerifiedToken, VerifyError>,
) -> Admission {
    let refusal = match verified {
        Ok(verified) => return authorize(resource, head, verified),
        Err(_) if has_token_in_query(head.uri) => Refusal::QueryToken,
        Err(error) if error.is_unavailable() => {
            Refusal::Unavailable { code: error.code(), retry_after: error.retry_after() }
        }
        Err(error) => Refusal::TokenRejected { code: error.code() },
    };
    Admission::Refuse(refusal, None)
}

fn judge_metadata(resource: &ProtectedResource, head: Head<'_>) -> Judgement {
    if matches!(resource.authentication, Authentication::Off) {
        return Judgement::Refuse(Refusal::NoMetadata);
    }
    match resource.document.answer(head.method, head.headers) {
        Outcome::Answer(response) => Judgement::Answer(response),
        Outcome::MethodNotAllowed { allow } => Judgement::Refuse(Refusal::MetadataMethod { allow }),
    }
}

fn authorize(resource: &ProtectedResource, head: Head<'_>, verified: VerifiedToken) -> Admission {
    if has_token_in_query(head.uri) {
        return Admission::Refuse(Refusal::QueryTokenBeside, Some(verified));
    }
    if let Some(limiter) = &resource.limits.per_principal
        && let Err(limited) = limiter.check_principal(Some(verified.principal()))
    {
        return Admission::Refuse(Refusal::LimitExceeded { code: "limit.principal", limited }, Some(verified));
    }
    let refusal = match resource.rules.judge(head.method, head.uri.path(), verified.principal()) {
        Ok(Authorized { report_only_denial }) => match start(resource, &verified) {
            Ok(permit) => return Admission::Admit { verified, report_only_denial, permit },
            Err(limited) => Refusal::LimitExceeded { code: "limit.in_flight", limited },
        },
        Err(NotAuthorized::Claims(unmet)) => Refusal::Claims(unmet),
        Err(NotAuthorized::AmbiguousPath) => Refusal::AmbiguousPath,
        Err(NotAuthorized::Scopes { needed }) => {
            Refusal::InsufficientScope { needed, granted: verified.principal().scopes().clone() }
        }
    };
    Admission::Refuse(refusal, Some(verified))
}

/// Counts a request as in progress, where that is limited.
fn start(resource: &ProtectedResource, verified: &VerifiedToken) -> Result<Option<Permit>, LimitExceeded> {
    let limiter = resource.limits.in_flight.as_ref();
    limiter.map(|limiter| limiter.start_request(verified.principal())).transpose()
}

fn has_token_in_query(uri: &Uri) -> bool {
    uri.query().is_some_and(has_access_token_parameter)
}
