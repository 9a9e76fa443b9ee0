//! OAuth error codes and error responses.

use http::StatusCode;

use portcullis_metadata::authorization::OAuthError;

use crate::{params::DuplicateParameter, random::RandomError};

/// An OAuth error code (RFC 6749 sections 4.1.2.1 and 5.2, RFC 7591 section 3.2.2, RFC
/// 8707 section 2, RFC 6750 section 3.1, RFC 8628 section 3.5, RFC 9449 sections 5 and 8, OpenID
/// Connect Core section 3.1.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The user or the server denied the request.
    AccessDenied,
    /// The user has not answered the device authorization yet.
    AuthorizationPending,
    /// The device code has expired.
    ExpiredToken,
    /// The credential does not cover the request.
    InsufficientScope,
    /// The client is unknown, or its authentication failed.
    InvalidClient,
    /// The metadata of a registration is invalid.
    InvalidClientMetadata,
    /// The DPoP proof is invalid.
    InvalidDpopProof,
    /// The code or token is unknown, expired, used, or issued to another client.
    InvalidGrant,
    /// A redirect URI of a registration is invalid.
    InvalidRedirectUri,
    /// A parameter is missing, malformed or repeated.
    InvalidRequest,
    /// The scope is malformed, or cannot be granted.
    InvalidScope,
    /// The resource is missing, malformed or unknown.
    InvalidTarget,
    /// The bearer token of the request is invalid.
    InvalidToken,
    /// `invalid_token` in the body. The challenge has no error, because the request has no token
    /// (RFC 6750 section 3.1).
    MissingToken,
    /// The server reads no request objects.
    RequestNotSupported,
    /// The server fetches no request objects.
    RequestUriNotSupported,
    /// The server failed.
    ServerError,
    /// The client polls too often.
    SlowDown,
    /// The server cannot answer now. The client can try again.
    TemporarilyUnavailable,
    /// The client may not use this grant type.
    UnauthorizedClient,
    /// The server does not have this grant type.
    UnsupportedGrantType,
    /// The server does not have this response type.
    UnsupportedResponseType,
    /// The DPoP proof must contain the nonce of the response.
    UseDpopNonce,
}

impl ErrorCode {
    /// Returns the value of the member `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccessDenied => "access_denied",
            Self::AuthorizationPending => "authorization_pending",
            Self::ExpiredToken => "expired_token",
            Self::InsufficientScope => "insufficient_scope",
            Self::InvalidClient => "invalid_client",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::InvalidDpopProof => "invalid_dpop_proof",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::InvalidToken | Self::MissingToken => "invalid_token",
            Self::RequestNotSupported => "request_not_supported",
            Self::RequestUriNotSupported => "request_uri_not_supported",
            Self::ServerError => "server_error",
            Self::SlowDown => "slow_down",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::UseDpopNonce => "use_dpop_nonce",
        }
    }

    /// Returns the status of a JSON response with this error (RFC 6749 section 5.2).
    pub const fn status(self) -> StatusCode {
        match self {
            Self::AccessDenied | Self::InsufficientScope => StatusCode::FORBIDDEN,
            Self::InvalidClient | Self::InvalidToken | Self::MissingToken => {
                StatusCode::UNAUTHORIZED
            }
            Self::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the value of `WWW-Authenticate` that a response with the status 401 must have: the
    /// challenge of the scheme that the client can use (RFC 6750 section 3, RFC 7617 section 2).
    ///
    /// `realm` must not contain quotes and backslashes.
    pub fn challenge(self, realm: &str) -> Option<String> {
        match self {
            Self::InvalidClient => Some(format!("Basic realm=\"{realm}\"")),
            Self::InvalidToken => {
                Some(format!("Bearer realm=\"{realm}\", error=\"invalid_token\""))
            }
            Self::MissingToken => Some(format!("Bearer realm=\"{realm}\"")),
            _ => None,
        }
    }
}

/// An error with a description for the client's developer. The description contains no value from
/// the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {description}", code.as_str())]
pub struct ErrorResponse {
    /// The code for programs.
    pub code: ErrorCode,
    /// The description for developers.
    pub description: &'static str,
}

impl ErrorResponse {
    /// Creates an error.
    pub const fn new(code: ErrorCode, description: &'static str) -> Self {
        Self { code, description }
    }

    /// Returns the JSON body of a response (RFC 6749 section 5.2, RFC 7591 section 3.2.2).
    pub fn to_json(self) -> Vec<u8> {
        OAuthError::new(self.code.as_str(), self.description).to_json()
    }
}

impl From<RandomError> for ErrorResponse {
    fn from(_: RandomError) -> Self {
        Self::new(
            ErrorCode::ServerError,
            "the operating system gave no random bytes",
        )
    }
}

impl From<DuplicateParameter> for ErrorResponse {
    fn from(_: DuplicateParameter) -> Self {
        Self::new(
            ErrorCode::InvalidRequest,
            "a parameter occurs more than once",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_401_has_a_challenge_and_nothing_else_has() {
        for (code, challenge) in [
            (ErrorCode::InvalidClient, Some("Basic realm=\"r\"")),
            (
                ErrorCode::InvalidToken,
                Some("Bearer realm=\"r\", error=\"invalid_token\""),
            ),
            (ErrorCode::MissingToken, Some("Bearer realm=\"r\"")),
            (ErrorCode::InvalidGrant, None),
            (ErrorCode::AccessDenied, None),
        ] {
            assert_eq!(code.challenge("r").as_deref(), challenge);
            assert_eq!(
                code.status() == StatusCode::UNAUTHORIZED,
                challenge.is_some()
            );
        }
    }
}
