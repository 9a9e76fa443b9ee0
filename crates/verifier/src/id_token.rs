//! The verification of tokens that an OpenID provider issues to its client: ID tokens and logout
//! tokens.

mod claims;
mod error;
mod logout_token;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use portcullis_jose::CompactJws;
use portcullis_metadata::{Secret, UnixTime};
use serde_json::{Map, Value};

use self::{
    claims::{SignedClaims, check_header_type},
    logout_token::check_logout_claims,
};
pub use self::{error::IdTokenError, logout_token::LogoutToken};
use crate::{issuer::TrustedIssuer, time::Deadline};

/// The maximum length of a token in bytes. An ID token with 200 groups has about 12 KiB.
const MAX_TOKEN_BYTES: usize = 32 * 1024;

/// What an ID token must contain.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedIdToken<'a> {
    /// The `client_id` of the application for which the token must be issued.
    pub client_id: &'a str,
    /// The `nonce` of the authorization request. `None` for a token that a refresh returned: its
    /// `nonce` is not compared.
    pub nonce: Option<&'a str>,
}

/// A verified ID token. `Debug` prints no claims, because they describe people.
#[derive(Clone, PartialEq)]
pub struct IdToken {
    subject: Box<str>,
    issued_at: UnixTime,
    claims: Map<String, Value>,
}

impl IdToken {
    /// Returns `sub`: 1 to 255 bytes.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns `iat`.
    pub fn issued_at(&self) -> UnixTime {
        self.issued_at
    }

    /// Returns all claims.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// Returns all claims.
    pub fn into_claims(self) -> Map<String, Value> {
        self.claims
    }
}

impl fmt::Debug for IdToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdToken").finish_non_exhaustive()
    }
}

impl TrustedIssuer {
    /// Verifies an ID token (OpenID Connect Core 1.0 section 3.1.3.7): the signature, with the keys
    /// and algorithms of this issuer, and the claims `iss`, `aud`, `azp`, `exp`, `nbf`, `iat`,
    /// `nonce` and `sub`. An access token is rejected.
    ///
    /// `iat` must be present, and so must `azp` if there are several audiences. The times have the
    /// issuer's leeway. Waits up to 5 s if the keys must be fetched.
    ///
    /// # Errors
    /// Fails if the token is rejected, or if it cannot be verified now
    /// ([`IdTokenError::is_unavailable`]).
    pub async fn verify_id_token(
        self: &Arc<Self>,
        token: &Secret,
        expected: &ExpectedIdToken<'_>,
    ) -> Result<IdToken, IdTokenError> {
        self.verify_client_token(token, |jws, claims, now| {
            check_header_type(jws.header().typ(), &["JWT", "id_token+jwt"])?;
            claims.check_id_token(self.settings(), expected, now)
        })
        .await
    }

    /// Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6): as an ID
    /// token, but with the logout event, without `nonce`, with `jti`, and with `sid` or `sub`. Its
    /// age is at most 5 min, and it need not have `exp`.
    ///
    /// The caller must accept each `jti` only once until [`LogoutToken::expires`].
    ///
    /// # Errors
    /// As [`verify_id_token`](Self::verify_id_token).
    pub async fn verify_logout_token(
        self: &Arc<Self>,
        token: &Secret,
        client_id: &str,
    ) -> Result<LogoutToken, IdTokenError> {
        self.verify_client_token(token, |jws, claims, now| {
            check_header_type(jws.header().typ(), &["JWT", "logout+jwt"])?;
            check_logout_claims(claims, self.settings(), client_id, now)
        })
        .await
    }

    /// Verifies the signature of a token, then passes its claims to `check`.
    async fn verify_client_token<T>(
        self: &Arc<Self>,
        token: &Secret,
        check: impl FnOnce(&CompactJws<'_>, SignedClaims, UnixTime) -> Result<T, IdTokenError>,
    ) -> Result<T, IdTokenError> {
        let jws = CompactJws::parse(token.secret(), MAX_TOKEN_BYTES)?;
        let claims = SignedClaims::parse(jws.unverified_payload())?;
        let mut deadline = Deadline::default();
        let signature = self
            .verify_signature(&jws, self.monotonic(), &mut deadline)
            .await?;
        let valid = check(&jws, claims, self.now())?;
        signature.permit.accept();
        Ok(valid)
    }
}
