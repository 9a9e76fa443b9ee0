//! [`IdTokenError`]: why an ID token or a logout token is not accepted.

use portcullis_jose::JoseError;
use portcullis_metadata::ClaimsError;
use portcullis_reason_codes::ReasonCodes;

use crate::error::VerifyError;

/// Why an ID token or a logout token is not accepted. No variant contains a part of the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum IdTokenError {
    /// The token's signature, format or times are invalid, or the token cannot be verified now.
    #[error(transparent)]
    #[code(transparent)]
    Token(#[from] VerifyError),
    /// The header's `typ` is that of another type of token, such as an access token.
    #[error("the token is of another type")]
    #[code = "id_token.type_not_allowed"]
    TypeNotAllowed,
    /// The `iss` claim of the ID token is not the identity provider.
    #[error("the token is from another issuer")]
    #[code = "id_token.issuer_mismatch"]
    IssuerMismatch,
    /// The `aud` claim of the ID token is not this application, or names others without `azp`.
    #[error("the token is for another application")]
    #[code = "id_token.audience_mismatch"]
    AudienceMismatch,
    /// The `azp` claim of the ID token is not this application.
    #[error("the token was issued to another application")]
    #[code = "id_token.authorized_party_mismatch"]
    AuthorizedPartyMismatch,
    /// The `nonce` claim of the ID token is missing or is not that of the authorization request.
    #[error("the token is from another sign-in")]
    #[code = "id_token.nonce_mismatch"]
    NonceMismatch,
    /// The `sub` claim of the ID token is missing, empty or longer than 255 bytes.
    #[error("the token has no valid subject")]
    #[code = "id_token.subject_invalid"]
    SubjectInvalid,
    /// The token is a logout token without the logout event, without `jti`, without `sid` and
    /// `sub`, or with `nonce`.
    #[error("the token is not a logout token")]
    #[code = "id_token.not_a_logout_token"]
    NotALogoutToken,
}

impl IdTokenError {
    /// Returns whether the token could not be verified now. It may be valid.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Token(error) if error.is_unavailable())
    }
}

impl From<JoseError> for IdTokenError {
    fn from(error: JoseError) -> Self {
        Self::Token(error.into())
    }
}

impl From<ClaimsError> for IdTokenError {
    fn from(error: ClaimsError) -> Self {
        Self::Token(error.into())
    }
}
