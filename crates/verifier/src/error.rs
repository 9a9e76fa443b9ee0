//! [`VerifyError`]: why a token is not accepted.

use std::time::Duration;

use portcullis_jose::JoseError;
use portcullis_metadata::ClaimsError;

/// The `retry_after` when too many tokens wait for verification or introspection. Most calls take less than a second.
const RETRY_AFTER_BUSY: Duration = Duration::from_secs(1);

/// Why a token is not accepted.
///
/// No variant contains a part of the token. With [`IssuerUnavailable`](Self::IssuerUnavailable),
/// [`IntrospectionBusy`](Self::IntrospectionBusy) and [`Busy`](Self::Busy) the token could not be verified and may be valid. All other variants reject the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The token is not an acceptable JWS, its algorithm is not allowed for its issuer, no key matches, or the
    /// signature is invalid.
    #[error(transparent)]
    Jws(#[from] JoseError),
    /// The payload is not a JSON object, or a claim is duplicated, has the wrong type or is an invalid date.
    #[error(transparent)]
    Claims(#[from] ClaimsError),
    /// The token has no `iss` claim.
    #[error("the token has no issuer")]
    IssuerMissing,
    /// The `iss` claim is not equal byte for byte to any of the resource's issuers.
    #[error("the token's issuer is not trusted for this resource")]
    IssuerUnknown,
    /// The introspection response names another issuer.
    #[error("the introspection response names another issuer")]
    IssuerMismatch,
    /// The introspection response is not active: the token is revoked, expired or unknown to the issuer.
    #[error("the token is not active")]
    Inactive,
    /// The header's `typ` is not that of an access token, or not `at+jwt` with
    /// [`require_at_jwt`](crate::IssuerSettings::require_at_jwt).
    #[error("the token's header type is not that of an access token")]
    TypeNotAllowed,
    /// The claims or the introspection response are those of an ID token, a refresh token, a logout token or a security
    /// event.
    #[error("the token is not an access token")]
    NotAnAccessToken,
    /// The token is sender-constrained (`cnf`), which is not supported.
    #[error("the token is sender-constrained, which is not supported")]
    SenderConstrained,
    /// The token has no `aud` claim.
    #[error("the token has no audience")]
    AudienceMissing,
    /// The `aud` claim does not contain this resource.
    #[error("the token is for another resource")]
    AudienceMismatch,
    /// The token has no `exp` claim.
    #[error("the token has no expiry")]
    ExpiryMissing,
    /// The `exp` claim is in the past.
    #[error("the token is expired")]
    Expired,
    /// The `nbf` claim is in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// The `iat` claim is in the future.
    #[error("the token was issued in the future")]
    IssuedInFuture,
    /// The token has no `iat` claim, which the issuer's `max_lifetime` requires.
    #[error("the token has no time of issue")]
    IssuedAtMissing,
    /// The token's lifetime exceeds the issuer's `max_lifetime`.
    #[error("the token's lifetime is longer than allowed")]
    LifetimeTooLong,
    /// The keys or the introspection response cannot be fetched now. The token may be valid.
    #[error("the issuer is unavailable")]
    IssuerUnavailable {
        /// The time after which the request can be repeated.
        retry_after: Duration,
    },
    /// Too many requests wait for the issuer's introspection endpoint, or too many calls of it are running. The token may be
    /// valid.
    #[error("too many requests wait for introspection")]
    IntrospectionBusy,
    /// Too many tokens wait for verification, or this one waited too long. The token may be valid.
    #[error("too many tokens wait for verification")]
    Busy,
}

impl VerifyError {
    /// Returns a stable code for logs, metrics and audit records. Do not send it to clients.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Jws(error) => error.code(),
            Self::Claims(error) => error.code(),
            Self::IssuerMissing => "token.issuer_missing",
            Self::IssuerUnknown => "token.issuer_unknown",
            Self::IssuerMismatch => "token.issuer_mismatch",
            Self::Inactive => "token.inactive",
            Self::TypeNotAllowed => "token.type_not_allowed",
            Self::NotAnAccessToken => "token.not_an_access_token",
            Self::SenderConstrained => "token.sender_constrained",
            Self::AudienceMissing => "token.audience_missing",
            Self::AudienceMismatch => "token.audience_mismatch",
            Self::ExpiryMissing => "token.expiry_missing",
            Self::Expired => "token.expired",
            Self::NotYetValid => "token.not_yet_valid",
            Self::IssuedInFuture => "token.issued_in_future",
            Self::IssuedAtMissing => "token.issued_at_missing",
            Self::LifetimeTooLong => "token.lifetime_too_long",
            Self::IssuerUnavailable { .. } => "issuer.unavailable",
            Self::IntrospectionBusy => "issuer.introspection_busy",
            Self::Busy => "verifier.busy",
        }
    }

    /// Returns whether the token could not be verified now. The client should keep it and repeat the request.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::IssuerUnavailable { .. } | Self::IntrospectionBusy | Self::Busy)
    }

    /// Returns the time after which the request can be repeated, if [`is_unavailable`](Self::is_unavailable).
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::IssuerUnavailable { retry_after } => Some(*retry_after),
            Self::IntrospectionBusy | Self::Busy => Some(RETRY_AFTER_BUSY),
            _ => None,
        }
    }
}
