use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use portcullis_metadata::Scopes;

use crate::{Challenges, ClaimDenial, LimitExceeded, OriginRejection, bearer::NoBearer};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Every way in which the guard refuses a request.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// By its host or origin.
    Origin(OriginRejection),
    /// The metadata document is read only.
    MetadataMethod { allow: HeaderValue },
    /// There is no metadata where authentication is off.
    NoMetadata,
    /// No bearer token that could be verified.
    NoBearer(NoBearer),
    /// A token in the query, and no valid one in the header.
    QueryToken,
    /// A token in the query beside a valid one in the header, or where no token is needed.
    QueryTokenBeside,
    /// The verifier does not accept the token.
    TokenRejected { code: &'static str },
    /// The token could not be judged now.
    Unavailable { code: &'static str, retry_after: Option<Duration> },
    /// Too many requests came.
    LimitExceeded { code: &'static str, limited: LimitExceeded },
    /// No rule can judge the path.
    AmbiguousPath,
    /// The token is good, and its claims are not what they have to be.
    Claims(ClaimDenial),
    /// The token is good and lacks scopes.
    InsufficientScope { needed: Scopes, granted: Scopes },
}

impl Refusal {
    /// The stable reason code: for the log, never for the client.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Origin(refused) => refused.code(),
            Self::MetadataMethod { .. } => "metadata.method",
            Self::NoMetadata => "metadata.none",
            Self::NoBearer(reason) => reason.code(),
            Self::QueryToken | Self::QueryTokenBeside => "bearer.in_query",
            Self::TokenRejected { code } | Self::Unavailable { code, .. } | Self::LimitExceeded { code, .. } => code,
            Self::AmbiguousPath => "path.ambiguous",
            Self::Claims(unmet) => unmet.code(),
            Self::InsufficientScope { .. } => "scope.insufficient",
        }
    }

    /// The answer that the client gets: generic text, and the challenge where one belongs.
    pub(crate) fn response(&self, challenges: &Challenges) -> Response<Option<Bytes>> {
        match self {
            Self::Origin(refused) if refused.status() == StatusCode::BAD_REQUEST => bad_request(),
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
            Self::NoBearer(NoBearer::Missing | NoBearer::OtherScheme) => unauthorized(challenges.without_error()),
            Self::NoBearer(NoBearer::Repeated | NoBearer::Malformed) | Self::QueryToken => {
                unauthorized(challenges.invalid_request())
            }
            Self::TokenRejected { .. } => unauthorized(challenges.invalid_token()),
            Self::Unavailable { retry_after, .. } => {
                let mut response = unauthorized(challenges.without_error());
                let wait = retry_after.unwrap_or(DEFAULT_RETRY_AFTER);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
                response
            }
            Self::LimitExceeded { limited, .. } => {
                let mut response = plain(
                    StatusCode::TOO_MANY_REQUESTS,
                    r#"{"error":"too_many_requests","error_description":"Try again later"}"#,
                );
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(limited.retry_after_secs()));
                response
            }
            Self::QueryTokenBeside | Self::AmbiguousPath => bad_request(),
            // Without a challenge: no other scopes would help.
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

/// One text for every cause: what is wrong with a token is for the log.
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

/// Rounded up, at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}
