//! Loads OpenSSL's algorithms before several threads use them at the same time.

use std::sync::Once;

use josekit::jwk::Jwk as JosekitJwk;

use crate::{
    algorithm::Algorithm,
    encoding,
    key_type::KeyType,
    provider::{generate_pair, signer, verifier},
};

/// Loads the algorithms at the first call, while other threads wait. Must be called before keys are
/// generated or imported.
///
/// OpenSSL 3.0 loads an algorithm at its first use, and fails for some threads if several do that
/// at the same time (openssl/openssl#13682): a valid key of an issuer was rejected at one of a
/// hundred starts.
pub(crate) fn load_algorithms() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        for algorithm in Algorithm::ALL {
            // If an algorithm cannot be used, the first real use returns the error.
            let _ = use_algorithm(algorithm);
        }
    });
}

/// Signs and verifies once. RSA only verifies, because generating a key takes long.
fn use_algorithm(algorithm: Algorithm) -> Option<()> {
    let message = b"first use";
    let (public, signature) = match KeyType::for_algorithm(algorithm) {
        KeyType::Rsa => (rsa_key()?, vec![1; MODULUS_LEN]),
        KeyType::P256 | KeyType::P384 | KeyType::P521 | KeyType::Ed25519 => {
            let pair = generate_pair(algorithm)?;
            let signature = signer(algorithm, &pair.to_der_private_key())?
                .sign(message)
                .ok()?;
            (pair.to_jwk_public_key(), signature)
        }
    };
    verifier(&public, algorithm)?
        .verify(message, &signature)
        .ok()
}

/// The length of the modulus of [`rsa_key`] in bytes.
const MODULUS_LEN: usize = 256;

/// Returns a public key without a private one. OpenSSL does not factor its modulus.
fn rsa_key() -> Option<JosekitJwk> {
    let mut modulus = String::new();
    encoding::encode_to([0xff; MODULUS_LEN], &mut modulus);
    let mut key = JosekitJwk::new("RSA");
    key.set_parameter("n", Some(modulus.into())).ok()?;
    key.set_parameter("e", Some("AQAB".into())).ok()?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every algorithm is used up to the verification, which fails only for the RSA key.
    #[test]
    fn every_algorithm_is_used() {
        for algorithm in Algorithm::ALL {
            let is_rsa = KeyType::for_algorithm(algorithm) == KeyType::Rsa;
            assert_eq!(use_algorithm(algorithm).is_none(), is_rsa, "{algorithm:?}");
        }
        assert!(verifier(&rsa_key().unwrap(), Algorithm::Rs256).is_some());
    }
}
