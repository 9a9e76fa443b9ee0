//! [`Identity`]: the token of a decision.

use portcullis_verifier::{HeldToken, VerifiedToken};

/// The token by which a request was admitted.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    /// `None` if authentication is off or the path is public.
    pub(crate) verified: Option<VerifiedToken>,
    /// The token itself, if its issuer introspects tokens.
    pub(crate) held_token: Option<HeldToken>,
}
