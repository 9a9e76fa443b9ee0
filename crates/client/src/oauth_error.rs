//! Removes what the client has sent from the errors of an authorization server.

use portcullis_discovery::SentSecrets;
use portcullis_metadata::authorization::OAuthError;

use crate::token::dpop;

/// The error codes that this crate distinguishes. They are never changed, although a short secret
/// can be a part of one.
const DISTINGUISHED_CODES: [&str; 10] = [
    "access_denied",
    "authorization_pending",
    "expired_token",
    "invalid_client",
    "invalid_grant",
    "invalid_scope",
    "slow_down",
    "unauthorized_client",
    "unsupported_token_type",
    dpop::USE_DPOP_NONCE,
];

/// Returns the error without the secrets that it repeats.
pub(crate) fn redacted(error: OAuthError, sent: &SentSecrets) -> OAuthError {
    let OAuthError {
        error,
        error_description,
        error_uri,
    } = error;
    let is_distinguished = DISTINGUISHED_CODES.contains(&error.as_str());
    let redact = |text: String| sent.redact(&text).into_owned();
    OAuthError {
        error: if is_distinguished {
            error
        } else {
            redact(error)
        },
        error_description: error_description.map(redact),
        error_uri: error_uri.map(redact),
    }
}
