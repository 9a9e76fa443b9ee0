//! josekit's key pairs, signers and verifiers for each algorithm.

use std::sync::Arc;

use josekit::{
    jwk::{
        Jwk as JosekitJwk, KeyPair,
        alg::{ec::EcCurve, ec::EcKeyPair, ed::EdCurve, ed::EdKeyPair, rsa::RsaKeyPair},
    },
    jws::{
        ES256, ES384, ES512, EdDSA, JwsSigner, JwsVerifier, PS256, PS384, PS512, RS256, RS384,
        RS512,
    },
};

use crate::{algorithm::Algorithm, encoding, key_type::KeyType};

/// The size of generated RSA keys and the minimum size of imported ones, in bits.
const RSA_BITS: u32 = 2048;

/// Generates a key pair of the type that the algorithm needs; `None` if OpenSSL cannot.
pub(crate) fn generate_pair(algorithm: Algorithm) -> Option<Box<dyn KeyPair>> {
    match KeyType::for_algorithm(algorithm) {
        KeyType::Rsa => boxed(RsaKeyPair::generate(RSA_BITS)),
        KeyType::P256 => boxed(EcKeyPair::generate(EcCurve::P256)),
        KeyType::P384 => boxed(EcKeyPair::generate(EcCurve::P384)),
        KeyType::P521 => boxed(EcKeyPair::generate(EcCurve::P521)),
        KeyType::Ed25519 => boxed(EdKeyPair::generate(EdCurve::Ed25519)),
    }
}

/// Imports a key pair of the type that the algorithm needs.
pub(crate) fn import_pair(algorithm: Algorithm, pem: &str) -> Option<Box<dyn KeyPair>> {
    match KeyType::for_algorithm(algorithm) {
        KeyType::Rsa => {
            let pair = RsaKeyPair::from_pem(pem).ok()?;
            (modulus_bits(&pair)? >= RSA_BITS).then(|| Box::new(pair) as Box<dyn KeyPair>)
        }
        KeyType::P256 => boxed(EcKeyPair::from_pem(pem, Some(EcCurve::P256))),
        KeyType::P384 => boxed(EcKeyPair::from_pem(pem, Some(EcCurve::P384))),
        KeyType::P521 => boxed(EcKeyPair::from_pem(pem, Some(EcCurve::P521))),
        KeyType::Ed25519 => boxed(EdKeyPair::from_pem(pem)),
    }
}

/// Returns the exact number of bits of the modulus, which josekit rounds up to bytes.
fn modulus_bits(pair: &RsaKeyPair) -> Option<u32> {
    let modulus = encoding::decode(pair.to_jwk_public_key().parameter("n")?.as_str()?)?;
    u32::try_from(modulus.len())
        .ok()?
        .checked_mul(8)?
        .checked_sub(modulus.first()?.leading_zeros())
}

/// Boxes a key pair. The error is dropped, because the caller has its own for each step.
fn boxed<P: KeyPair + 'static, E>(pair: Result<P, E>) -> Option<Box<dyn KeyPair>> {
    pair.ok().map(|pair| Box::new(pair) as Box<dyn KeyPair>)
}

/// Returns the signer of an algorithm for a private key in DER.
pub(crate) fn signer(algorithm: Algorithm, private: &[u8]) -> Option<Box<dyn JwsSigner>> {
    fn boxed<S: JwsSigner + 'static, E>(signer: Result<S, E>) -> Option<Box<dyn JwsSigner>> {
        signer
            .ok()
            .map(|signer| Box::new(signer) as Box<dyn JwsSigner>)
    }
    match algorithm {
        Algorithm::Rs256 => boxed(RS256.signer_from_der(private)),
        Algorithm::Rs384 => boxed(RS384.signer_from_der(private)),
        Algorithm::Rs512 => boxed(RS512.signer_from_der(private)),
        Algorithm::Ps256 => boxed(PS256.signer_from_der(private)),
        Algorithm::Ps384 => boxed(PS384.signer_from_der(private)),
        Algorithm::Ps512 => boxed(PS512.signer_from_der(private)),
        Algorithm::Es256 => boxed(ES256.signer_from_der(private)),
        Algorithm::Es384 => boxed(ES384.signer_from_der(private)),
        Algorithm::Es512 => boxed(ES512.signer_from_der(private)),
        Algorithm::EdDsa => boxed(EdDSA.signer_from_der(private)),
    }
}

/// Returns the verifier of an algorithm that needs this type of key; `None` if OpenSSL rejects the
/// key.
pub(crate) fn verifier(jwk: &JosekitJwk, algorithm: Algorithm) -> Option<Arc<dyn JwsVerifier>> {
    fn into_arc<V: JwsVerifier + 'static, E>(
        verifier: Result<V, E>,
    ) -> Option<Arc<dyn JwsVerifier>> {
        verifier
            .ok()
            .map(|verifier| Arc::new(verifier) as Arc<dyn JwsVerifier>)
    }
    match algorithm {
        Algorithm::Rs256 => into_arc(RS256.verifier_from_jwk(jwk)),
        Algorithm::Rs384 => into_arc(RS384.verifier_from_jwk(jwk)),
        Algorithm::Rs512 => into_arc(RS512.verifier_from_jwk(jwk)),
        Algorithm::Ps256 => into_arc(PS256.verifier_from_jwk(jwk)),
        Algorithm::Ps384 => into_arc(PS384.verifier_from_jwk(jwk)),
        Algorithm::Ps512 => into_arc(PS512.verifier_from_jwk(jwk)),
        Algorithm::Es256 => into_arc(ES256.verifier_from_jwk(jwk)),
        Algorithm::Es384 => into_arc(ES384.verifier_from_jwk(jwk)),
        Algorithm::Es512 => into_arc(ES512.verifier_from_jwk(jwk)),
        Algorithm::EdDsa => into_arc(EdDSA.verifier_from_jwk(jwk)),
    }
}
