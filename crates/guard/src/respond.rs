//! [`Rejection`]: the only place that turns a rejection into a response.

mod challenges;

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use portcullis_metadata::Scopes;

pub use self::challenges::Challenges;
use crate::{
    authenticate::NoBearerToken,
    authorize::ClaimDenial,
    limit::{LimitExceeded, whole_seconds},
    origin::OriginRejection,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
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
    /// The stable reason code. It is logged and never sent to the client.
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

    /// The response: a generic text, and a challenge for 401 and insufficient scope.
    ///
    /// `exceeded_body` replaces the body of 429.
    pub(crate) fn response(&self, challenges: &Challenges, exceeded_body: Option<&Bytes>) -> Response<Option<Bytes>> {
        match self {
            Self::Origin(rejection) if rejection.status() == StatusCode::BAD_REQUEST => bad_request(),
            Self::Origin(_) => plain(
                StatusCode::FORBIDDEN,
                r#"{"error":"forbidden","error_description":"The host or origin is not allowed"}"#,
            ),
            Self::MetadataMethod { allow } => {
                let mut response = plain(
                    StatusCode::METHOD_NOT_ALLOWED,
                    r#"{"error":"method_not_allowed","error_description":"The metadata can only be read"}"#,
                );
                response.headers_mut().insert(ALLOW, allow.clone());
                response
            }
            Self::NoMetadata => {
                plain(StatusCode::NOT_FOUND, r#"{"error":"not_found","error_description":"There is no such document"}"#)
            }
            Self::NoBearerToken(NoBearerToken::Missing | NoBearerToken::OtherScheme) => {
                unauthorized(challenges.without_error())
            }
            Self::NoBearerToken(NoBearerToken::Repeated | NoBearerToken::Malformed) | Self::TokenInQuery => {
                unauthorized(challenges.invalid_request())
            }
            Self::InvalidToken { .. } => unauthorized(challenges.invalid_token()),
            Self::Unavailable { retry_after, .. } => {
                let mut response = unauthorized(challenges.without_error());
                let wait = retry_after.unwrap_or(DEFAULT_RETRY_AFTER);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
                response
            }
            Self::LimitExceeded { exceeded, .. } => {
                let mut response = plain(
                    StatusCode::TOO_MANY_REQUESTS,
                    r#"{"error":"too_many_requests","error_description":"Try again later"}"#,
                );
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(exceeded.retry_after_secs()));
                if let Some(body) = exceeded_body {
                    *response.body_mut() = Some(body.clone());
                }
                response
            }
            Self::SecondTokenInQuery | Self::AmbiguousPath => bad_request(),
            // There is no challenge, because other scopes would not help.
            Self::Claims(_) => plain(
                StatusCode::FORBIDDEN,
                r#"{"error":"access_denied","error_description":"The access token does not allow this request"}"#,
            ),
            Self::InsufficientScope { needed, granted } => {
                let mut response = plain(
                    StatusCode::FORBIDDEN,
                    r#"{"error":"insufficient_scope","error_description":"The access token lacks scopes that this request needs"}"#,
                );
                let challenge = challenges.insufficient_scope(needed, granted);
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
                response
            }
        }
    }
}

/// Every cause has the same text, so that the client does not learn why a token is invalid.
fn unauthorized(challenge: &HeaderValue) -> Response<Option<Bytes>> {
    let mut response = plain(
        StatusCode::UNAUTHORIZED,
        r#"{"error":"unauthorized","error_description":"A valid bearer access token is required"}"#,
    );
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge.clone());
    response
}

fn bad_request() -> Response<Option<Bytes>> {
    plain(StatusCode::BAD_REQUEST, r#"{"error":"invalid_request","error_description":"The request is not acceptable"}"#)
}

fn plain(status: StatusCode, body: &'static str) -> Response<Option<Bytes>> {
    let mut response = Response::new(Some(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}
