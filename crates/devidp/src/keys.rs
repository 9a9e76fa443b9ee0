use bytes::Bytes;
use portcullis_jose::{Algorithm, SigningError, SigningKey};
use serde_json::json;

use crate::SigningAlgorithm;

/// The signing keys of this process. They are new at each start, under new identifiers.
pub(crate) struct Keys {
    rs256: SigningKey,
    es256: SigningKey,
    /// The public parts (RFC 7517 section 5).
    pub(crate) jwks: Bytes,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("the operating system gave no random bytes")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    Signing(#[from] SigningError),
}

impl Keys {
    /// Makes a key for each algorithm. The RSA key takes a noticeable time.
    pub(crate) fn generate() -> Result<Self, KeysError> {
        // With an identifier of its own, a key is not mistaken for the one of an earlier start with the same issuer.
        let start = getrandom::u32()?;
        let rs256 = SigningKey::generate(Algorithm::Rs256, format!("rs256-{start:08x}"))?;
        let es256 = SigningKey::generate(Algorithm::Es256, format!("es256-{start:08x}"))?;
        let jwks = json!({ "keys": [rs256.public_jwk(), es256.public_jwk()] });
        Ok(Self { rs256, es256, jwks: Bytes::from(jwks.to_string()) })
    }

    pub(crate) fn of(&self, algorithm: SigningAlgorithm) -> &SigningKey {
        match algorithm {
            SigningAlgorithm::Rs256 => &self.rs256,
            SigningAlgorithm::Es256 => &self.es256,
        }
    }
}
