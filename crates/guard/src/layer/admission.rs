//! The steps by which the guard admits or rejects a request, in their order.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use portcullis_metadata::{AccessToken, Now, syntax::has_access_token_parameter};
use portcullis_verifier::{Principal, VerifiedToken, Verifier, VerifyError};

use crate::{
    authenticate::BearerCredentials,
    authorize::{Authorized, ClaimDenial},
    cors,
    document::DocumentResponse,
    limit::Permit,
    resource::ProtectedResource,
    respond::{Limit, Rejection},
    settings::Authentication,
};

/// The parts of a request that the guard reads: everything except the body.
#[derive(Clone, Copy)]
pub(crate) struct RequestHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    version: Version,
    headers: &'a HeaderMap,
    arrival: Now,
    client_address: Option<IpAddr>,
}

impl<'a> RequestHead<'a> {
    /// Borrows the head of a request. `client_address` is `None` if the server does not set
    /// [`Peer`](crate::Peer).
    pub(crate) fn new<B>(
        request: &'a Request<B>,
        arrival: Now,
        client_address: Option<IpAddr>,
    ) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            version: request.version(),
            headers: request.headers(),
            arrival,
            client_address,
        }
    }

    fn has_token_in_query(&self) -> bool {
        self.uri.query().is_some_and(has_access_token_parameter)
    }
}

/// The next step with a request.
pub(crate) enum NextStep {
    /// Pass it to the inner service.
    Admit(Admission),
    /// Verify the token, and then call [`check_verified`].
    Verify(Arc<Verifier>, AccessToken),
    /// Answer with an error.
    Reject(Rejected),
    /// Answer with this response.
    Respond(Response<Option<Bytes>>),
}

/// An admitted request.
#[derive(Default)]
pub(crate) struct Admission {
    /// `None` if authentication is off or the path is public.
    pub(crate) verified: Option<VerifiedToken>,
    /// The denial by a report-only rule.
    pub(crate) report_only_denial: Option<ClaimDenial>,
    /// Counts the request while it is in progress, if that is limited.
    pub(crate) permit: Option<Permit>,
}

/// A rejected request.
pub(crate) struct Rejected {
    pub(crate) rejection: Rejection,
    /// The token, if it is valid.
    pub(crate) verified: Option<VerifiedToken>,
}

impl From<Rejection> for Rejected {
    fn from(rejection: Rejection) -> Self {
        Self {
            rejection,
            verified: None,
        }
    }
}

/// Performs the steps that need no waiting, in their order: host and origin, metadata document,
/// preflight, rate of the client address, credentials. If the token is cached, or none is needed,
/// these are all steps.
pub(crate) fn check_request(resource: &ProtectedResource, head: RequestHead<'_>) -> NextStep {
    if let Err(rejection) = resource.origins.check(head.version, head.uri, head.headers) {
        return NextStep::Reject(Rejection::Origin(rejection).into());
    }
    if resource.document.is_at(head.uri.path()) {
        return answer_metadata_request(resource, head);
    }
    if cors::is_preflight(head.method, head.headers) {
        return NextStep::Respond(resource.cors.preflight(head.headers));
    }
    if let Some(limiter) = &resource.limits.per_address
        && let Err(exceeded) = limiter.check_address(head.client_address)
    {
        return NextStep::Reject(
            Rejection::LimitExceeded {
                limit: Limit::Address,
                exceeded,
            }
            .into(),
        );
    }
    match &resource.authentication {
        Authentication::Required(verifier) if !resource.is_public(head.uri.path()) => {
            check_credentials(resource, verifier, head)
        }
        _ if head.has_token_in_query() => NextStep::Reject(Rejection::SecondTokenInQuery.into()),
        _ => NextStep::Admit(Admission::default()),
    }
}

/// Authorizes the request if its token is cached. Otherwise returns the token to verify.
fn check_credentials(
    resource: &ProtectedResource,
    verifier: &Arc<Verifier>,
    head: RequestHead<'_>,
) -> NextStep {
    let credentials = BearerCredentials::read(head.headers);
    // The syntax of a cached token has been checked before.
    if let Some(verified) = credentials
        .ok()
        .and_then(|credentials| verifier.cached_at(credentials.as_bytes(), head.arrival))
    {
        return match authorize(resource, head, verified) {
            Ok(admission) => NextStep::Admit(admission),
            Err(rejected) => NextStep::Reject(rejected),
        };
    }
    match credentials.and_then(BearerCredentials::unverified_token) {
        Ok(token) => NextStep::Verify(Arc::clone(verifier), AccessToken::new(token)),
        Err(_) if head.has_token_in_query() => NextStep::Reject(Rejection::TokenInQuery.into()),
        Err(reason) => NextStep::Reject(Rejection::NoBearerToken(reason).into()),
    }
}

/// Performs the steps after the verification of a token that was not cached.
pub(crate) fn check_verified(
    resource: &ProtectedResource,
    head: RequestHead<'_>,
    verified: Result<VerifiedToken, VerifyError>,
) -> Result<Admission, Rejected> {
    let rejection = match verified {
        Ok(verified) => return authorize(resource, head, verified),
        Err(_) if head.has_token_in_query() => Rejection::TokenInQuery,
        Err(error) => rejected_token(error),
    };
    Err(rejection.into())
}

/// Returns the rejection of a token. One that cannot be verified now is not called invalid.
pub(super) fn rejected_token(error: VerifyError) -> Rejection {
    if error.is_unavailable() {
        Rejection::Unavailable(error)
    } else {
        Rejection::InvalidToken(error)
    }
}

/// Responds to a request for the metadata document. Without authentication there is none.
fn answer_metadata_request(resource: &ProtectedResource, head: RequestHead<'_>) -> NextStep {
    if matches!(resource.authentication, Authentication::Off) {
        return NextStep::Reject(Rejection::NoMetadata.into());
    }
    match resource.document.respond(head.method, head.headers) {
        DocumentResponse::Response(response) => NextStep::Respond(response),
        DocumentResponse::MethodNotAllowed { allow } => {
            NextStep::Reject(Rejection::MetadataMethod { allow }.into())
        }
    }
}

/// Performs the steps after the verification of a token. A rejection keeps the token, for the log.
fn authorize(
    resource: &ProtectedResource,
    head: RequestHead<'_>,
    verified: VerifiedToken,
) -> Result<Admission, Rejected> {
    match authorize_principal(resource, head, verified.principal()) {
        Ok(admission) => Ok(Admission {
            verified: Some(verified),
            ..admission
        }),
        Err(rejection) => Err(Rejected {
            rejection,
            verified: Some(verified),
        }),
    }
}

/// Checks what a principal may do and how often. The admission does not have the token yet.
fn authorize_principal(
    resource: &ProtectedResource,
    head: RequestHead<'_>,
    principal: &Principal,
) -> Result<Admission, Rejection> {
    if head.has_token_in_query() {
        return Err(Rejection::SecondTokenInQuery);
    }
    if let Some(limiter) = &resource.limits.per_principal {
        let checked = limiter.check_principal(Some(principal));
        checked.map_err(|exceeded| Rejection::LimitExceeded {
            limit: Limit::Principal,
            exceeded,
        })?;
    }
    let authorized = resource
        .rules
        .authorize(head.method, head.uri.path(), principal);
    let Authorized { report_only_denial } =
        authorized.map_err(|reason| Rejection::not_authorized(reason, principal))?;
    let in_flight = resource.limits.in_flight.as_ref();
    let permit = in_flight
        .map(|limiter| limiter.start_request(principal))
        .transpose();
    let permit = permit.map_err(|exceeded| Rejection::LimitExceeded {
        limit: Limit::InFlight,
        exceeded,
    })?;
    Ok(Admission {
        verified: None,
        report_only_denial,
        permit,
    })
}
