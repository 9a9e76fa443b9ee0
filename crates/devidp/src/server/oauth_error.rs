//! OAuth error codes and error responses.

use http::StatusCode;

use crate::server::form::DuplicateParameter;

/// The error codes of this server (RFC 6749 sections 4.1.2.1 and 5.2, RFC 7591 section 3.2.2, RFC
/// 8707 section 2, RFC 6750 section 3.1, RFC 8628 section 3.5, RFC 9449 sections 5 and 8, OpenID
/// Connect Core section 3.1.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InsufficientScope,
    InvalidClient,
    InvalidClientMetadata,
    InvalidDpopProof,
    InvalidGrant,
    InvalidRedirectUri,
    InvalidRequest,
    InvalidScope,
    InvalidTarget,
    InvalidToken,
    /// `invalid_token` in the body. The challenge has no error, because the request has no token
    /// (RFC 6750 section 3.1).
    MissingToken,
    RequestNotSupported,
    RequestUriNotSupported,
    ServerError,
    SlowDown,
    TemporarilyUnavailable,
    UnauthorizedClient,
    UnsupportedGrantType,
    UnsupportedResponseType,
    UseDpopNonce,
}

impl ErrorCode {
    pub(crate) const fn as_str(self) -> &'static str {
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

    /// Returns the status of a JSON response with this error.
    pub(crate) const fn status(self) -> StatusCode {
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
}

/// An error with a description for the client's developer. The description contains no value from
/// the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorResponse {
    pub(crate) code: ErrorCode,
    pub(crate) description: &'static str,
}

impl ErrorResponse {
    pub(crate) const fn new(code: ErrorCode, description: &'static str) -> Self {
        Self { code, description }
    }
}

impl From<getrandom::Error> for ErrorResponse {
    fn from(_: getrandom::Error) -> Self {
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
