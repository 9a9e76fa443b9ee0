//! [`VerifyError`]: why a token is not accepted.

use std::time::Duration;

use portcullis_jose::JoseError;
use portcullis_metadata::ClaimsError;
use portcullis_reason_codes::ReasonCodes;

/// The `retry_after` when too many tokens wait for verification or introspection. Most calls take
/// less than a second.
const RETRY_AFTER_BUSY: Duration = Duration::from_secs(1);

/// Why a token is not accepted.
///
/// No variant contains a part of the token. With [`IssuerUnavailable`](Self::IssuerUnavailable),
/// [`IntrospectionBusy`](Self::IntrospectionBusy) and [`Busy`](Self::Busy) the token could not be
/// verified and may be valid. All other variants reject the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum VerifyError {
    /// The token is not an acceptable JWS, its algorithm is not allowed for its issuer, no key
    /// matches, or the signature is invalid.
    #[error(transparent)]
    #[code(transparent)]
    Jws(#[from] JoseError),
    /// The payload is not a JSON object, or a claim is duplicated, has the wrong type or is an
    /// invalid date.
    #[error(transparent)]
    #[code(transparent)]
    Claims(#[from] ClaimsError),
    /// The token has no `iss` claim.
    #[error("the token has no issuer")]
    #[code = "token.issuer_missing"]
    IssuerMissing,
    /// The `iss` claim is not equal byte for byte to any of the resource's issuers.
    #[error("the token's issuer is not trusted for this resource")]
    #[code = "token.issuer_unknown"]
    IssuerUnknown,
    /// The introspection response names another issuer.
    #[error("the introspection response names another issuer")]
    #[code = "token.issuer_mismatch"]
    IssuerMismatch,
    /// The introspection response is not active: the token is revoked, expired or unknown to the
    /// issuer.
    #[error("the token is not active")]
    #[code = "token.inactive"]
    Inactive,
    /// The header's `typ` is not that of an access token, or not `at+jwt` with
    /// [`require_at_jwt`](crate::IssuerSettings::require_at_jwt).
    #[error("the token's header type is not that of an access token")]
    #[code = "token.type_not_allowed"]
    TypeNotAllowed,
    /// The claims or the introspection response are those of an ID token, a refresh token, a logout
    /// token or a security event.
    #[error("the token is not an access token")]
    #[code = "token.not_an_access_token"]
    NotAnAccessToken,
    /// The token is sender-constrained (`cnf`), which is not supported.
    #[error("the token is sender-constrained, which is not supported")]
    #[code = "token.sender_constrained"]
    SenderConstrained,
    /// The token, or the sign-in that it belongs to, was ended before the token expired.
    #[error("the token was revoked")]
    #[code = "token.revoked"]
    Revoked,
    /// The token has no `aud` claim.
    #[error("the token has no audience")]
    #[code = "token.audience_missing"]
    AudienceMissing,
    /// The `aud` claim does not contain this resource.
    #[error("the token is for another resource")]
    #[code = "token.audience_mismatch"]
    AudienceMismatch,
    /// The token has no `exp` claim.
    #[error("the token has no expiry")]
    #[code = "token.expiry_missing"]
    ExpiryMissing,
    /// The `exp` claim is in the past.
    #[error("the token is expired")]
    #[code = "token.expired"]
    Expired,
    /// The `nbf` claim is in the future.
    #[error("the token is not valid yet")]
    #[code = "token.not_yet_valid"]
    NotYetValid,
    /// The `iat` claim is in the future.
    #[error("the token was issued in the future")]
    #[code = "token.issued_in_future"]
    IssuedInFuture,
    /// The token has no `iat` claim, which the issuer's `max_lifetime` requires.
    #[error("the token has no time of issue")]
    #[code = "token.issued_at_missing"]
    IssuedAtMissing,
    /// The token's lifetime exceeds the issuer's `max_lifetime`.
    #[error("the token's lifetime is longer than allowed")]
    #[code = "token.lifetime_too_long"]
    LifetimeTooLong,
    /// The keys or the introspection response cannot be fetched now. The token may be valid.
    #[error("the issuer is unavailable")]
    #[code = "issuer.unavailable"]
    IssuerUnavailable {
        /// The time after which the request can be repeated.
        retry_after: Duration,
    },
    /// Too many requests wait for the issuer's introspection endpoint, or too many calls of it are
    /// running. The token may be valid.
    #[error("too many requests wait for introspection")]
    #[code = "issuer.introspection_busy"]
    IntrospectionBusy,
    /// Too many tokens wait for verification, or this one waited too long. The token may be valid.
    #[error("too many tokens wait for verification")]
    #[code = "verifier.busy"]
    Busy,
}

impl VerifyError {
    /// Returns whether the token could not be verified now. The client should keep it and repeat
    /// the request.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::IssuerUnavailable { .. } | Self::IntrospectionBusy | Self::Busy
        )
    }

    /// Returns the time after which the request can be repeated, if
    /// [`is_unavailable`](Self::is_unavailable).
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::IssuerUnavailable { retry_after } => Some(*retry_after),
            Self::IntrospectionBusy | Self::Busy => Some(RETRY_AFTER_BUSY),
            _ => None,
        }
    }
}
