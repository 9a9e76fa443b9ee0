//! [`VerifyingKey`]: a published key that is imported from a JWK.

mod material;

use std::sync::Arc;

use josekit::jws::JwsVerifier;
use portcullis_metadata::Jwk;

use self::material::{KeyMaterial, MAX_SIGNATURE_LEN};
use crate::{
    algorithm::{Algorithm, AlgorithmSet},
    encoding,
    error::KeyError,
    key_type::KeyType,
};

/// A public key for one algorithm. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct VerifyingKey {
    algorithm: Algorithm,
    /// The length of every signature by this key, in bytes.
    signature_len: usize,
    verifier: Arc<dyn JwsVerifier>,
}

impl VerifyingKey {
    /// Imports a key once for each allowed algorithm that it can be used with. Only an RSA key
    /// without `alg` can be used with more than one. Fails if the key is not for signatures, is
    /// malformed or weak, or cannot be used with any allowed algorithm.
    pub(crate) fn import(jwk: &Jwk, allowed: AlgorithmSet) -> Result<Vec<Self>, KeyError> {
        if !allows_verification(jwk) {
            return Err(KeyError::NotForSignatures);
        }
        let declared = jwk.alg.as_deref().map(str::parse::<Algorithm>).transpose();
        let declared = declared.map_err(|_| KeyError::UnsupportedAlgorithm)?;
        let key_type = KeyType::from_jwk(jwk)?;
        if declared.is_some_and(|algorithm| key_type != KeyType::for_algorithm(algorithm)) {
            return Err(KeyError::Mismatch);
        }
        let usable: AlgorithmSet = allowed
            .iter()
            .filter(|algorithm| declared.is_none_or(|declared| declared == *algorithm))
            .filter(|algorithm| key_type == KeyType::for_algorithm(*algorithm))
            .collect();
        if usable.is_empty() {
            return Err(KeyError::AlgorithmNotAllowed);
        }
        let material = KeyMaterial::import(jwk, key_type)?;
        let bind = |algorithm| {
            let verifier = material.verifier(algorithm)?;
            Ok(Self {
                algorithm,
                signature_len: material.signature_len(),
                verifier,
            })
        };
        usable.iter().map(bind).collect()
    }

    /// Returns the only algorithm that the key is used with.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns whether `signature`, in base64url, is this key's signature of the message.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        if encoding::decoded_len(signature.len()) != Some(self.signature_len) {
            return false;
        }
        let mut buffer = [0; MAX_SIGNATURE_LEN];
        encoding::decode_into(signature, &mut buffer)
            .is_some_and(|signature| self.verifier.verify(message, signature).is_ok())
    }
}

/// Returns whether `use` and `key_ops` allow the verification of signatures (RFC 7517 sections 4.2
/// and 4.3).
fn allows_verification(jwk: &Jwk) -> bool {
    jwk.use_.as_deref().is_none_or(|key_use| key_use == "sig")
        && jwk
            .key_ops
            .as_ref()
            .is_none_or(|operations| operations.iter().any(|operation| operation == "verify"))
}

#[cfg(test)]
mod vectors;
