use std::sync::Arc;

use crate::Principal;

/// Evidence that a token was verified: signature, issuer, audience, times and kind, for one resource.
///
/// Only [`Verifier`](crate::Verifier) makes it, so that later stages take it instead of a flag. It holds the
/// [`Principal`], not the token. Cheap to clone.
///
/// It says what was true at the moment of verification; a stream that outlives
/// [`Principal::expires`] has to be judged again. Scopes are not judged here.
#[derive(Clone, Debug)]
pub struct VerifiedToken(Arc<Principal>);

impl VerifiedToken {
    pub(crate) fn new(principal: Principal) -> Self {
        Self(Arc::new(principal))
    }

    /// Whom the token speaks for.
    pub fn principal(&self) -> &Principal {
        &self.0
    }
}
