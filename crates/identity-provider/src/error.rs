//! [`ProviderError`]: why a provider does not identify a user.

use portcullis_reason_codes::ReasonCodes;

use crate::UnreachableCause;

/// Why a provider does not identify a user. No text contains a token, a code or a name of a user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum ProviderError {
    /// The provider cannot be reached, is slow, or answers with 5xx or 429.
    #[error("the identity provider cannot be reached: {0}")]
    #[code = "provider.unreachable"]
    Unreachable(UnreachableCause),
    /// The provider rejects the application: its identifier, its secret, its scopes or its redirect
    /// URI.
    #[error("the identity provider rejects this application: {0}")]
    #[code = "provider.application_rejected"]
    ApplicationRejected(&'static str),
    /// The provider's metadata or one of its responses is invalid.
    #[error("the identity provider's response is invalid: {0}")]
    #[code = "provider.response_invalid"]
    ResponseInvalid(&'static str),
    /// The provider rejects the code, the refresh token or the access token: it has expired, was
    /// used, or the user's session or account has ended.
    #[error("the identity provider ended the sign-in of this user")]
    #[code = "provider.sign_in_ended"]
    SignInEnded,
    /// The provider's ID token or logout token is invalid.
    #[error("the identity provider's ID token is invalid: {0}")]
    #[code = "provider.id_token_invalid"]
    IdTokenInvalid(&'static str),
    /// The authorization response names another issuer (RFC 9207), or none although the provider
    /// announces it.
    #[error("the response does not come from the expected identity provider")]
    #[code = "provider.issuer_mismatch"]
    IssuerMismatch,
    /// The user is in a tenant that may not sign in.
    #[error("users of this tenant may not sign in")]
    #[code = "provider.tenant_not_allowed"]
    TenantNotAllowed,
}

impl ProviderError {
    /// Returns whether the provider may identify the user later, so that an earlier sign-in is kept
    /// for a time. An invalid ID token counts: a refresh that returns one does not show that the
    /// user was removed, and a wrong clock would end all sign-ins.
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::ApplicationRejected(_)
                | Self::ResponseInvalid(_)
                | Self::IdTokenInvalid(_)
        )
    }

    /// Returns a stable code of the cause, for logs, if the variant has several.
    pub const fn cause(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable(cause) => Some(cause.code()),
            Self::ApplicationRejected(cause)
            | Self::ResponseInvalid(cause)
            | Self::IdTokenInvalid(cause) => Some(cause),
            _ => None,
        }
    }
}
