//! [`Rejection`]: every reason for which the guard rejects a request, and the response to it.

mod challenges;

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use portcullis_metadata::Scopes;
use portcullis_verifier::Principal;

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
#[derive(Debug)]
pub(crate) enum Rejection {
    /// The host or origin is not allowed.
    Origin(OriginRejection),
    /// The method is not allowed for the metadata document.
    MetadataMethod { allow: HeaderValue },
    /// Authentication is off, so there is no metadata document.
    NoMetadata,
    /// There is no bearer token that can be verified.
    NoBearerToken(NoBearerToken),
    /// There is a token in the query and no valid one in the header.
    TokenInQuery,
    /// There is a token in the query although the header has a valid one, or no token is needed.
    SecondTokenInQuery,
    /// The token is not valid.
    InvalidToken { code: &'static str },
    /// The token cannot be verified now.
    Unavailable { code: &'static str, retry_after: Option<Duration> },
    /// A limit is exceeded.
    LimitExceeded { code: &'static str, exceeded: LimitExceeded },
    /// The path is ambiguous, so no route rule can be applied.
    AmbiguousPath,
    /// The token is valid, and a claim rule denies the request.
    Claims(ClaimDenial),
    /// The token is valid and lacks scopes.
    InsufficientScope { needed: Scopes, granted: Scopes },
}

impl Rejection {
    /// Returns the rejection of a principal by the rules.
    pub(crate) fn not_authorized(reason: NotAuthorized, principal: &Principal) -> Self {
        match reason {
            NotAuthorized::Claims(denial) => Self::Claims(denial),
            NotAuthorized::AmbiguousPath => Self::AmbiguousPath,
            NotAuthorized::Scopes { needed } => Self::InsufficientScope { needed, granted: principal.scopes().clone() },
        }
    }

    /// Returns the stable reason code. It is logged and never sent to the client.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Origin(rejection) => rejection.code(),
            Self::MetadataMethod { .. } => "metadata.method",
            Self::NoMetadata => "metadata.none",
            Self::NoBearerToken(reason) => reason.code(),
            Self::TokenInQuery | Self::SecondTokenInQuery => "bearer.in_query",
            Self::InvalidToken { code } | Self::Unavailable { code, .. } | Self::LimitExceeded { code, .. } => code,
            Self::AmbiguousPath => "path.ambiguous",
            Self::Claims(denial) => denial.code(),
            Self::InsufficientScope { .. } => "scope.insufficient",
        }
    }

    /// Returns the response: a generic JSON body, a challenge for 401 and insufficient scope, and `Retry-After` if the
    /// client can try again.
    ///
    /// `exceeded_body` replaces the body of 429.
    pub(crate) fn response(&self, challenges: &Challenges, exceeded_body: Option<&Bytes>) -> Response<Option<Bytes>> {
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

    /// Returns the status and the body. Every cause of a 401 has the same body, so that the client does not learn why a
    /// token is invalid.
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
            Self::NoMetadata => {
                (StatusCode::NOT_FOUND, r#"{"error":"not_found","error_description":"There is no such document"}"#)
            }
            Self::NoBearerToken(_) | Self::TokenInQuery | Self::InvalidToken { .. } | Self::Unavailable { .. } => (
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

    /// Returns the challenge (RFC 6750 section 3). A denial by a claim rule has none, because other scopes would not
    /// help.
    fn challenge(&self, challenges: &Challenges) -> Option<HeaderValue> {
        match self {
            Self::NoBearerToken(NoBearerToken::Missing | NoBearerToken::OtherScheme) | Self::Unavailable { .. } => {
                Some(challenges.without_error().clone())
            }
            Self::NoBearerToken(NoBearerToken::Repeated | NoBearerToken::Malformed) | Self::TokenInQuery => {
                Some(challenges.invalid_request().clone())
            }
            Self::InvalidToken { .. } => Some(challenges.invalid_token().clone()),
            Self::InsufficientScope { needed, granted } => Some(challenges.insufficient_scope(needed, granted)),
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
            Self::Unavailable { retry_after, .. } => Some(whole_seconds(retry_after.unwrap_or(DEFAULT_RETRY_AFTER))),
            Self::LimitExceeded { exceeded, .. } => Some(exceeded.retry_after_secs()),
            _ => None,
        }
    }
}
