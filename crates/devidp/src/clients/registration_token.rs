use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_authorization_server::{RandomError, random_secret};
use portcullis_metadata::Secret;
use sha2::{Digest as _, Sha256};

/// Generates a registration access token.
pub(crate) fn generate_registration_token() -> Result<Secret, RandomError> {
    random_secret(32)
}

/// The hash of a registration access token (RFC 7592 section 3). The token itself is not stored.
pub(crate) struct RegistrationTokenHash(Secret);

impl RegistrationTokenHash {
    pub(crate) fn of(token: &Secret) -> Self {
        Self(Secret::new(
            URL_SAFE_NO_PAD.encode(Sha256::digest(token.secret())),
        ))
    }

    /// Compares in constant time.
    pub(crate) fn matches(&self, token: &Secret) -> bool {
        Self::of(token).0 == self.0
    }
}
