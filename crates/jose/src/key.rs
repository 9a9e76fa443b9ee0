//! [`VerifyingKey`]: a published key that is imported from a JWK.

use std::sync::Arc;

use josekit::{
    jwk::Jwk as JosekitJwk,
    jws::{ES256, ES384, ES512, EdDSA, JwsVerifier, PS256, PS384, PS512, RS256, RS384, RS512},
};
use portcullis_metadata::Jwk;

use crate::{
    algorithm::{Algorithm, AlgorithmSet},
    ed25519, encoding,
    error::KeyError,
};

/// The length of the longest signature, that of an 8192-bit RSA key, in bytes.
const SIGNATURE_BUFFER: usize = MAX_MODULUS_BITS / 8;
const MIN_MODULUS_BITS: usize = 2048;
const MAX_MODULUS_BITS: usize = 8192;
const MIN_EXPONENT: u64 = 65537;

/// A public key for one algorithm. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct VerifyingKey {
    algorithm: Algorithm,
    signature_len: usize,
    verifier: Arc<dyn JwsVerifier>,
}

impl VerifyingKey {
    /// Imports a key once for each allowed algorithm that it can be used with. Only an RSA key without `alg` can be used with
    /// more than one.
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
        usable.iter().map(|algorithm| material.verifier(algorithm)).collect()
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns whether `signature`, in base64url, is this key's signature of the message.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        if encoding::decoded_len(signature.len()) != Some(self.signature_len) {
            return false;
        }
        let mut buffer = [0; SIGNATURE_BUFFER];
        encoding::decode_into(signature, &mut buffer)
            .is_some_and(|signature| self.verifier.verify(message, signature).is_ok())
    }
}

/// Returns whether `use` and `key_ops` allow the verification of signatures (RFC 7517 sections 4.2 and 4.3).
fn allows_verification(jwk: &Jwk) -> bool {
    jwk.use_.as_deref().is_none_or(|key_use| key_use == "sig")
        && jwk.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|operation| operation == "verify"))
}

/// The key type and curve that an algorithm needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyType {
    Rsa,
    P256,
    P384,
    P521,
    Ed25519,
}

impl KeyType {
    fn from_jwk(jwk: &Jwk) -> Result<Self, KeyError> {
        match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Ok(Self::Rsa),
            ("EC", Some("P-256")) => Ok(Self::P256),
            ("EC", Some("P-384")) => Ok(Self::P384),
            ("EC", Some("P-521")) => Ok(Self::P521),
            ("OKP", Some("Ed25519")) => Ok(Self::Ed25519),
            _ => Err(KeyError::UnsupportedType),
        }
    }

    const fn for_algorithm(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Rs256 | Algorithm::Rs384 | Algorithm::Rs512 => Self::Rsa,
            Algorithm::Ps256 | Algorithm::Ps384 | Algorithm::Ps512 => Self::Rsa,
            Algorithm::Es256 => Self::P256,
            Algorithm::Es384 => Self::P384,
            Algorithm::Es512 => Self::P521,
            Algorithm::EdDsa => Self::Ed25519,
        }
    }

    /// Returns the length of a coordinate in bytes (RFC 7518 section 6.2.1, RFC 8037 section 2), or 0 for RSA.
    const fn coordinate_len(self) -> usize {
        match self {
            Self::Rsa => 0,
            Self::P256 | Self::Ed25519 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

/// Validated key material as a josekit JWK, without `kid`, `alg`, `use` and private members.
struct KeyMaterial {
    jwk: JosekitJwk,
    signature_len: usize,
}

impl KeyMaterial {
    fn import(jwk: &Jwk, key_type: KeyType) -> Result<Self, KeyError> {
        match key_type {
            KeyType::Rsa => Self::rsa(jwk),
            KeyType::P256 | KeyType::P384 | KeyType::P521 => {
                Self::point(jwk, key_type, "EC", &[("x", &jwk.x), ("y", &jwk.y)])
            }
            KeyType::Ed25519 => Self::point(jwk, key_type, "OKP", &[("x", &jwk.x)]),
        }
    }

    fn rsa(jwk: &Jwk) -> Result<Self, KeyError> {
        let modulus = decode_integer(jwk.n.as_deref(), MAX_MODULUS_BITS / 8, KeyError::Modulus)?;
        let exponent = decode_integer(jwk.e.as_deref(), size_of::<u32>(), KeyError::Exponent)?;
        if !(MIN_MODULUS_BITS..=MAX_MODULUS_BITS).contains(&bit_len(&modulus)) || !is_odd(&modulus) {
            return Err(KeyError::Modulus);
        }
        let value = exponent.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        if value < MIN_EXPONENT || !is_odd(&exponent) {
            return Err(KeyError::Exponent);
        }
        let signature_len = modulus.len();
        Ok(Self { jwk: josekit_jwk("RSA", [("n", modulus), ("e", exponent)])?, signature_len })
    }

    fn point(jwk: &Jwk, key_type: KeyType, kty: &str, members: &[(&str, &Option<String>)]) -> Result<Self, KeyError> {
        let mut coordinates = Vec::with_capacity(members.len());
        for (name, encoded) in members {
            let coordinate =
                encoding::decode(encoded.as_deref().ok_or(KeyError::Malformed)?).ok_or(KeyError::Malformed)?;
            if coordinate.len() != key_type.coordinate_len() {
                return Err(KeyError::Point);
            }
            if key_type == KeyType::Ed25519 && !coordinate.first_chunk().is_some_and(ed25519::is_acceptable) {
                return Err(KeyError::Point);
            }
            coordinates.push((*name, coordinate));
        }
        let mut josekit = josekit_jwk(kty, coordinates)?;
        josekit.set_parameter("crv", jwk.crv.clone().map(Into::into)).map_err(|_| KeyError::Malformed)?;
        Ok(Self { jwk: josekit, signature_len: 2 * key_type.coordinate_len() })
    }

    fn verifier(&self, algorithm: Algorithm) -> Result<VerifyingKey, KeyError> {
        fn into_arc<V: JwsVerifier + 'static, E>(verifier: Result<V, E>) -> Option<Arc<dyn JwsVerifier>> {
            verifier.ok().map(|verifier| Arc::new(verifier) as Arc<dyn JwsVerifier>)
        }
        let jwk = &self.jwk;
        let verifier = match algorithm {
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
        };
        let verifier = verifier.ok_or(match KeyType::for_algorithm(algorithm) {
            KeyType::Rsa => KeyError::Malformed,
            _ => KeyError::Point,
        })?;
        Ok(VerifyingKey { algorithm, signature_len: self.signature_len, verifier })
    }
}

/// Decodes an unsigned integer of at most `max_len` bytes (RFC 7518 section 2, Base64urlUInt). One leading zero byte, which
/// some issuers send, is removed (RFC 7518 section 6.3.1.1).
fn decode_integer(encoded: Option<&str>, max_len: usize, too_long: KeyError) -> Result<Vec<u8>, KeyError> {
    let encoded = encoded.ok_or(KeyError::Malformed)?;
    if encoding::decoded_len(encoded.len()).ok_or(KeyError::Malformed)? > max_len + 1 {
        return Err(too_long);
    }
    let mut bytes = encoding::decode(encoded).ok_or(KeyError::Malformed)?;
    if bytes.first() == Some(&0) {
        bytes.remove(0);
    }
    match bytes.first() {
        None | Some(0) => Err(KeyError::Malformed),
        Some(_) if bytes.len() > max_len => Err(too_long),
        Some(_) => Ok(bytes),
    }
}

/// Returns the exact number of bits of an integer without leading zero bytes.
fn bit_len(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |first| bytes.len() * 8 - first.leading_zeros() as usize)
}

fn is_odd(bytes: &[u8]) -> bool {
    bytes.last().is_some_and(|last| last % 2 == 1)
}

fn josekit_jwk<'n>(kty: &str, members: impl IntoIterator<Item = (&'n str, Vec<u8>)>) -> Result<JosekitJwk, KeyError> {
    let mut jwk = JosekitJwk::new(kty);
    for (name, bytes) in members {
        let mut encoded = String::new();
        encoding::encode_to(bytes, &mut encoded);
        jwk.set_parameter(name, Some(encoded.into())).map_err(|_| KeyError::Malformed)?;
    }
    Ok(jwk)
}

#[cfg(test)]
mod vectors;
