//! [`Rejection`]: every reason for which the guard rejects a request, and the response to it.

mod challenges;

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use portcullis_metadata::Scopes;
use portcullis_reason_codes::ReasonCodes;
use portcullis_verifier::{Principal, VerifyError};

pub use self::challenges::Challenges;
use crate::{
    authenticate::NoBearerToken,
    authorize::{ClaimDenial, NotAuthorized},
    limit::{LimitExceeded, whole_seconds},
    origin::OriginRejection,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The retry time if a token cannot be verified now and the verifier names none.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Every reason for which the guard rejects a request.
#[derive(Debug, ReasonCodes)]
pub(crate) enum Rejection {
    /// The host or origin is not allowed.
    #[code(transparent)]
    Origin(OriginRejection),
    /// The method is not allowed for the metadata document.
    #[code = "metadata.method"]
    MetadataMethod { allow: HeaderValue },
    /// Authentication is off, so there is no metadata document.
    #[code = "metadata.none"]
    NoMetadata,
    /// There is no bearer token that can be verified.
    #[code(transparent)]
    NoBearerToken(NoBearerToken),
    /// There is a token in the query and no valid one in the header.
    #[code = "bearer.in_query"]
    TokenInQuery,
    /// There is a token in the query although the header has a valid one, or no token is needed.
    #[code = "bearer.in_query"]
    SecondTokenInQuery,
    /// The token is not valid.
    #[code(transparent)]
    InvalidToken(VerifyError),
    /// The token cannot be verified now.
    #[code(transparent)]
    Unavailable(VerifyError),
    /// A limit is exceeded.
    #[code(transparent)]
    LimitExceeded {
        limit: Limit,
        exceeded: LimitExceeded,
    },
    /// The path is ambiguous, so no route rule can be applied.
    #[code = "path.ambiguous"]
    AmbiguousPath,
    /// The token is valid, and a claim rule denies the request.
    #[code(transparent)]
    Claims(ClaimDenial),
    /// The token is valid and lacks scopes.
    #[code = "scope.insufficient"]
    InsufficientScope { needed: Scopes, granted: Scopes },
}

/// The limit that a request exceeds.
#[derive(Clone, Copy, Debug, ReasonCodes)]
pub(crate) enum Limit {
    /// The client address exceeded `limits.per_address`.
    #[code = "limit.address"]
    Address,
    /// The client address exceeded `limits.rejected_per_address` with requests without a valid
    /// token.
    #[code = "limit.rejected"]
    Rejected,
    /// The principal exceeded `limits.per_principal`.
    #[code = "limit.principal"]
    Principal,
    /// The principal has `limits.in_flight_per_principal` requests in progress.
    #[code = "limit.in_flight"]
    InFlight,
    /// The principal has as many event streams open as are allowed.
    #[code = "limit.streams"]
    Streams,
}

impl Rejection {
    /// Returns the rejection of a principal by the rules.
    pub(crate) fn not_authorized(reason: NotAuthorized, principal: &Principal) -> Self {
        match reason {
            NotAuthorized::Claims(denial) => Self::Claims(denial),
            NotAuthorized::AmbiguousPath => Self::AmbiguousPath,
            NotAuthorized::Scopes { needed } => Self::InsufficientScope {
                needed,
                granted: principal.scopes().clone(),
            },
        }
    }

    /// Returns whether the request has no valid token. One that cannot be verified now may be
    /// valid.
    pub(crate) fn lacks_valid_token(&self) -> bool {
        matches!(
            self,
            Self::NoBearerToken(_) | Self::TokenInQuery | Self::InvalidToken(_)
        )
    }

    /// Returns the response: a generic JSON body, a challenge for 401 and insufficient scope, and
    /// `Retry-After` if the client can try again.
    ///
    /// `exceeded_body` replaces the body of 429.
    pub(crate) fn response(
        &self,
        challenges: &Challenges,
        exceeded_body: Option<&Bytes>,
    ) -> Response<Option<Bytes>> {
        let (status, body) = self.status_and_body();
        let body = match exceeded_body {
            Some(exceeded_body) if status == StatusCode::TOO_MANY_REQUESTS => exceeded_body.clone(),
            _ => Bytes::from_static(body.as_bytes()),
        };
        let mut response = Response::new(Some(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(CACHE_CONTROL, NO_STORE);
        if let Some(challenge) = self.challenge(challenges) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(retry_after) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(retry_after));
        }
        if let Self::MetadataMethod { allow } = self {
            headers.insert(ALLOW, allow.clone());
        }
        response
    }

    /// Returns the status and the body. Every cause of a 401 has the same body, so that the client
    /// does not learn why a token is invalid.
    fn status_and_body(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Origin(rejection) if rejection.status() == StatusCode::FORBIDDEN => (
                StatusCode::FORBIDDEN,
                r#"{"error":"forbidden","error_description":"The host or origin is not allowed"}"#,
            ),
            Self::Origin(_) | Self::SecondTokenInQuery | Self::AmbiguousPath => (
                StatusCode::BAD_REQUEST,
                r#"{"error":"invalid_request","error_description":"The request is not acceptable"}"#,
            ),
            Self::MetadataMethod { .. } => (
                StatusCode::METHOD_NOT_ALLOWED,
                r#"{"error":"method_not_allowed","error_description":"The metadata can only be read"}"#,
            ),
            Self::NoMetadata => (
                StatusCode::NOT_FOUND,
                r#"{"error":"not_found","error_description":"There is no such document"}"#,
            ),
            Self::NoBearerToken(_)
            | Self::TokenInQuery
            | Self::InvalidToken(_)
            | Self::Unavailable(_) => (
                StatusCode::UNAUTHORIZED,
                r#"{"error":"unauthorized","error_description":"A valid bearer access token is required"}"#,
            ),
            Self::LimitExceeded { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                r#"{"error":"too_many_requests","error_description":"Try again later"}"#,
            ),
            Self::Claims(_) => (
                StatusCode::FORBIDDEN,
                r#"{"error":"access_denied","error_description":"The access token does not allow this request"}"#,
            ),
            Self::InsufficientScope { .. } => (
                StatusCode::FORBIDDEN,
                r#"{"error":"insufficient_scope","error_description":"The access token lacks scopes that this request needs"}"#,
            ),
        }
    }

    /// Returns the challenge (RFC 6750 section 3). A denial by a claim rule has none, because other
    /// scopes would not help.
    fn challenge(&self, challenges: &Challenges) -> Option<HeaderValue> {
        match self {
            Self::NoBearerToken(NoBearerToken::Missing | NoBearerToken::OtherScheme)
            | Self::Unavailable(_) => Some(challenges.without_error().clone()),
            Self::NoBearerToken(NoBearerToken::Repeated | NoBearerToken::Malformed)
            | Self::TokenInQuery => Some(challenges.invalid_request().clone()),
            Self::InvalidToken(_) => Some(challenges.invalid_token().clone()),
            Self::InsufficientScope { needed, granted } => {
                Some(challenges.insufficient_scope(needed, granted))
            }
            Self::Origin(_)
            | Self::MetadataMethod { .. }
            | Self::NoMetadata
            | Self::SecondTokenInQuery
            | Self::LimitExceeded { .. }
            | Self::AmbiguousPath
            | Self::Claims(_) => None,
        }
    }

    /// Returns the seconds after which the request can succeed, if it is rejected only for now.
    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Unavailable(error) => Some(whole_seconds(
                error.retry_after().unwrap_or(DEFAULT_RETRY_AFTER),
            )),
            Self::LimitExceeded { exceeded, .. } => Some(exceeded.retry_after_secs()),
            _ => None,
        }
    }
}
