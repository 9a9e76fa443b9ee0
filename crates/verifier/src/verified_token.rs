//! [`VerifiedToken`]: evidence that a token was verified.

use std::sync::Arc;

use crate::principal::Principal;

/// Evidence that a token was verified for one resource: its signature or introspection response,
/// issuer, audience, times and type.
///
/// Only [`Verifier`](crate::Verifier) creates it, so later stages can require it instead of a flag.
/// It contains the [`Principal`], not the token, and is cheap to clone.
///
/// It describes the time of verification. A stream that outlives [`Principal::expires`] must be
/// checked again. Scopes are not checked.
///
/// ```
/// use portcullis_verifier::VerifiedToken;
///
/// /// Cannot be called without a verified token.
/// fn delete_account(caller: &VerifiedToken) -> Result<(), &'static str> {
///     let principal = caller.principal();
///     if !principal.scopes().contains("account:delete") {
///         return Err("the token lacks the scope account:delete");
///     }
///     // …
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct VerifiedToken(Arc<Principal>);

impl VerifiedToken {
    /// Creates the evidence. Only the verifier calls it, after all checks.
    pub(crate) fn new(principal: Principal) -> Self {
        Self(Arc::new(principal))
    }

    /// Returns the identity and grants of the token.
    pub fn principal(&self) -> &Principal {
        &self.0
    }
}
