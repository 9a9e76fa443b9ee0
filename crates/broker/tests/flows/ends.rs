//! The ends of access tokens, as the guard of the same process sees them.

use portcullis_verifier::RevokedTokens as _;
use serde_json::Value;

use crate::support::{Setup, claims};

/// Returns whether the sign-in of a token response has ended.
pub(crate) fn is_ended(setup: &Setup, tokens: &Value) -> bool {
    setup.ends.is_revoked(claims(tokens)["sid"].as_str(), None)
}
