//! [`RevokedTokens`]: the tokens that an issuer in the same process has revoked.

use std::fmt;

/// The tokens that an issuer in the same process has revoked. They are rejected although their
/// signature is valid and they have not expired. It is set in
/// [`IssuerSettings::revoked`](crate::IssuerSettings::revoked).
///
/// It is asked when a token is verified, not when a cached token is used: see there.
pub trait RevokedTokens: fmt::Debug + Send + Sync + 'static {
    /// Returns whether the token with these claims was revoked: `sid`, the session to which it
    /// belongs, and `jti`, its own identifier.
    fn is_revoked(&self, sid: Option<&str>, jti: Option<&str>) -> bool;

    /// Returns whether all revocations are known. Until they are, no token of the issuer is
    /// verified: [`VerifyError::IssuerUnavailable`](crate::VerifyError::IssuerUnavailable).
    fn is_complete(&self) -> bool {
        true
    }
}
