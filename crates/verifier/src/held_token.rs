//! [`HeldToken`]: an introspected token that can be checked again.

use std::{fmt, sync::Arc};

use portcullis_discovery::BoxFuture;
use portcullis_metadata::{AccessToken, Now};

use crate::{
    error::VerifyError,
    recheck::{TokenCheck, WatchedToken},
    token_hash::TokenHash,
    verified_token::VerifiedToken,
    verify::Verifier,
};

/// An introspected token that can be introspected again. [`Verifier::hold`] creates it.
///
/// The token cannot be read, and its memory is wiped on drop.
///
/// ```
/// use portcullis_verifier::{HeldToken, RecheckFailure};
///
/// /// Sends events until the token is no longer valid.
/// fn stream(held: &HeldToken, events: impl Iterator<Item = String>) -> Result<(), RecheckFailure> {
///     let Some(watched) = held.watch() else { return Ok(()) };
///     for event in events {
///         let verified = watched.latest()?;
///         println!("{event} for {:?}", verified.principal().subject());
///     }
///     Ok(())
/// }
/// ```
pub struct HeldToken {
    verifier: Arc<Verifier>,
    verified: VerifiedToken,
    token: AccessToken,
}

impl Verifier {
    /// Keeps a token that [`verify`](Self::verify) or [`cached`](Self::cached) accepted as
    /// `verified`, so that it can be [watched](HeldToken::watch). Returns `None` for a token that
    /// was not introspected.
    pub fn hold(self: &Arc<Self>, verified: &VerifiedToken, token: &str) -> Option<HeldToken> {
        verified.principal().is_introspected().then(|| HeldToken {
            verifier: Arc::clone(self),
            verified: verified.clone(),
            token: AccessToken::new(token),
        })
    }
}

impl HeldToken {
    /// Starts to check the token until the returned value and all others for the same token are
    /// dropped. Returns `None` if the verifier does not have the token's issuer.
    pub fn watch(&self) -> Option<Arc<WatchedToken>> {
        let issuer = self.verified.principal().issuer();
        let trusted = self
            .verifier
            .issuers()
            .iter()
            .find(|trusted| trusted.issuer() == issuer)?;
        Some(
            trusted
                .rechecks()
                .watch(Box::new(self.clone()), &self.verified),
        )
    }
}

impl TokenCheck for HeldToken {
    fn hash(&self) -> TokenHash {
        self.verifier.token_hash(&self.token)
    }

    fn cached(&self) -> Option<VerifiedToken> {
        self.verifier.cached(self.token.secret())
    }

    fn verify_again(&self) -> BoxFuture<'_, Result<VerifiedToken, VerifyError>> {
        Box::pin(self.verifier.verify_again(&self.token))
    }

    fn now(&self) -> Now {
        self.verifier.clock().read()
    }
}

impl Clone for HeldToken {
    fn clone(&self) -> Self {
        Self {
            verifier: Arc::clone(&self.verifier),
            verified: self.verified.clone(),
            token: self.token.clone(),
        }
    }
}

impl fmt::Debug for HeldToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldToken")
            .field("verified", &self.verified)
            .finish_non_exhaustive()
    }
}
