use bytes::Bytes;
use portcullis_jose::{Algorithm, AlgorithmSet, KeySet, SigningError, SigningKey};
use portcullis_metadata::JwkSet;
use serde_json::json;

use crate::SigningAlgorithm;

/// The signing keys of this process. They are new at each start, under new identifiers.
pub(crate) struct Keys {
    rs256: SigningKey,
    es256: SigningKey,
    /// The public parts (RFC 7517 section 5).
    pub(crate) jwks: Bytes,
    /// What verifies the tokens that they signed.
    pub(crate) verifying: KeySet,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("the operating system gave no random bytes")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    Signing(#[from] SigningError),
    #[error("the keys cannot be read back")]
    Unreadable,
}

impl Keys {
    /// Makes a key for each algorithm. The RSA key takes a noticeable time.
    pub(crate) fn generate() -> Result<Self, KeysError> {
        // With an identifier of its own, a key is not mistaken for the one of an earlier start with the same issuer.
        let start = getrandom::u32()?;
        let rs256 = SigningKey::generate(Algorithm::Rs256, format!("rs256-{start:08x}"))?;
        let es256 = SigningKey::generate(Algorithm::Es256, format!("es256-{start:08x}"))?;
        let jwks = json!({ "keys": [rs256.public_jwk(), es256.public_jwk()] });
        let jwks = Bytes::from(jwks.to_string());
        let published = JwkSet::parse(&jwks).map_err(|_| KeysError::Unreadable)?;
        let algorithms: AlgorithmSet = [Algorithm::Rs256, Algorithm::Es256].into_iter().collect();
        let (verifying, _) = KeySet::from_jwks(&published, algorithms).map_err(|_| KeysError::Unreadable)?;
        Ok(Self { rs256, es256, jwks, verifying })
    }

    pub(crate) fn of(&self, algorithm: SigningAlgorithm) -> &SigningKey {
        match algorithm {
            SigningAlgorithm::Rs256 => &self.rs256,
            SigningAlgorithm::Es256 => &self.es256,
        }
    }
}
