use std::time::Duration;

use portcullis_jose::JoseError;
use portcullis_metadata::ClaimsError;

/// When to come again where too many tokens wait to be verified.
const RETRY_AFTER_BUSY: Duration = Duration::from_secs(1);

/// Why a token is not accepted.
///
/// No variant holds anything of the token. Everything but [`IssuerUnavailable`](Self::IssuerUnavailable) and
/// [`Busy`](Self::Busy) is a judgement on the token; those say only that it could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// It is no signed token of the accepted form, its algorithm is not allowed for its issuer, no key fits, or the
    /// signature does not verify.
    #[error(transparent)]
    Jws(#[from] JoseError),
    /// Its payload is not one JSON object, or a claim in it is repeated, of a wrong type, or an absurd date.
    #[error(transparent)]
    Claims(#[from] ClaimsError),
    /// It has no `iss` claim.
    #[error("the token names no issuer")]
    IssuerMissing,
    /// Its `iss` is none of the resource's issuers, byte for byte.
    #[error("the token's issuer is not one of this resource's")]
    IssuerUnknown,
    /// Its issuer, asked about it, says that it is another issuer's.
    #[error("the token's issuer says that it is another issuer's")]
    IssuerMismatch,
    /// Its issuer, asked about it, says that it does not count: it is revoked, expired or unknown there.
    #[error("the token's issuer says that it does not count")]
    Inactive,
    /// Its header `typ` is not that of an access token; with
    /// [`require_at_jwt`](crate::IssuerSettings::require_at_jwt), anything but `at+jwt`.
    #[error("the token's header type is not that of an access token")]
    TypeNotAllowed,
    /// Its claims, or what its issuer says of it, show that it is an ID token, a refresh token, a logout token or a
    /// security event.
    #[error("the token is not an access token")]
    NotAnAccessToken,
    /// It is bound to a key of its sender (`cnf`), and that binding is not enforced here.
    #[error("the token is bound to its sender, and that binding is not supported")]
    SenderConstrained,
    /// It has no `aud` claim.
    #[error("the token names no audience")]
    AudienceMissing,
    /// No entry of its `aud` is this resource.
    #[error("the token is for another resource")]
    AudienceMismatch,
    /// It has no `exp` claim.
    #[error("the token has no expiry")]
    ExpiryMissing,
    /// Its `exp` is past.
    #[error("the token is expired")]
    Expired,
    /// Its `nbf` is in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// Its `iat` is in the future.
    #[error("the token is issued in the future")]
    IssuedInFuture,
    /// The issuer has a longest lifetime set, and the token has no `iat` to judge it by.
    #[error("the token does not say when it was issued")]
    IssuedAtMissing,
    /// It lives longer than the issuer's tokens may.
    #[error("the token's lifetime is longer than allowed")]
    LifetimeTooLong,
    /// The issuer cannot be asked right now, for its keys where no key that is held fits, or about the token: it may be
    /// good.
    #[error("the issuer cannot be asked right now")]
    IssuerUnavailable {
        /// When asking again makes sense.
        retry_after: Duration,
    },
    /// Too many tokens wait for their signature to be verified, or this one did for too long: it may be good.
    #[error("too many tokens wait to be verified")]
    Busy,
}

impl VerifyError {
    /// The stable reason code, for logs, metrics and audit. Never for the client.
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
            Self::Busy => "verifier.busy",
        }
    }

    /// Whether the token could not be judged, so that the client should keep it and come again.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::IssuerUnavailable { .. } | Self::Busy)
    }

    /// When to come again, where the token could not be judged.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::IssuerUnavailable { retry_after } => Some(*retry_after),
            Self::Busy => Some(RETRY_AFTER_BUSY),
            _ => None,
        }
    }
}
