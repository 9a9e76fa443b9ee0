//! [`KeyMaterial`]: the validated members of a public key.

use std::sync::Arc;

use josekit::{jwk::Jwk as JosekitJwk, jws::JwsVerifier};
use portcullis_metadata::Jwk;

use crate::{
    algorithm::Algorithm, ed25519, encoding, error::KeyError, first_use::load_algorithms,
    key_type::KeyType, provider::verifier,
};

/// The size of the smallest RSA modulus (RFC 7518 section 3.3), in bits.
const MIN_MODULUS_BITS: usize = 2048;
/// The size of the largest RSA modulus, in bits. It bounds the time of a verification.
const MAX_MODULUS_BITS: usize = 8192;
/// The smallest RSA exponent. Smaller ones make mistakes in the padding exploitable.
const MIN_EXPONENT: u64 = 65537;
/// The length of the longest signature, that of the largest RSA key, in bytes.
pub(super) const MAX_SIGNATURE_LEN: usize = MAX_MODULUS_BITS / 8;

/// Validated key material as a josekit JWK, without `kid`, `alg`, `use` and private members.
pub(super) struct KeyMaterial {
    jwk: JosekitJwk,
    signature_len: usize,
}

impl KeyMaterial {
    /// Imports a key of this type. Fails if a member is missing or malformed, an RSA key is weak,
    /// or coordinates have the wrong length.
    pub(super) fn import(jwk: &Jwk, key_type: KeyType) -> Result<Self, KeyError> {
        load_algorithms();
        match key_type {
            KeyType::Rsa => Self::rsa(jwk),
            KeyType::P256 | KeyType::P384 | KeyType::P521 => {
                Self::point(jwk, key_type, "EC", &[("x", &jwk.x), ("y", &jwk.y)])
            }
            KeyType::Ed25519 => Self::point(jwk, key_type, "OKP", &[("x", &jwk.x)]),
        }
    }

    /// Returns the length of a signature in bytes (RFC 7518 sections 3.3 to 3.5, RFC 8032 section
    /// 5.1.6).
    pub(super) fn signature_len(&self) -> usize {
        self.signature_len
    }

    fn rsa(jwk: &Jwk) -> Result<Self, KeyError> {
        let modulus = decode_integer(jwk.n.as_deref(), MAX_MODULUS_BITS / 8, KeyError::Modulus)?;
        let exponent = decode_integer(jwk.e.as_deref(), size_of::<u32>(), KeyError::Exponent)?;
        if !(MIN_MODULUS_BITS..=MAX_MODULUS_BITS).contains(&bit_len(&modulus)) || !is_odd(&modulus)
        {
            return Err(KeyError::Modulus);
        }
        let value = exponent
            .iter()
            .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        if value < MIN_EXPONENT || !is_odd(&exponent) {
            return Err(KeyError::Exponent);
        }
        let signature_len = modulus.len();
        Ok(Self {
            jwk: josekit_jwk("RSA", [("n", modulus), ("e", exponent)])?,
            signature_len,
        })
    }

    fn point(
        jwk: &Jwk,
        key_type: KeyType,
        kty: &str,
        members: &[(&str, &Option<String>)],
    ) -> Result<Self, KeyError> {
        let mut coordinates = Vec::with_capacity(members.len());
        for (name, encoded) in members {
            let coordinate = encoding::decode(encoded.as_deref().ok_or(KeyError::Malformed)?)
                .ok_or(KeyError::Malformed)?;
            if coordinate.len() != key_type.coordinate_len() {
                return Err(KeyError::Point);
            }
            if key_type == KeyType::Ed25519
                && !coordinate.first_chunk().is_some_and(ed25519::is_acceptable)
            {
                return Err(KeyError::Point);
            }
            coordinates.push((*name, coordinate));
        }
        let mut josekit = josekit_jwk(kty, coordinates)?;
        josekit
            .set_parameter("crv", jwk.crv.clone().map(Into::into))
            .map_err(|_| KeyError::Malformed)?;
        Ok(Self {
            jwk: josekit,
            signature_len: 2 * key_type.coordinate_len(),
        })
    }

    /// Returns the verifier of an algorithm that needs this type of key. Fails if OpenSSL rejects
    /// the key, for example because the coordinates are not a point on the curve.
    pub(super) fn verifier(&self, algorithm: Algorithm) -> Result<Arc<dyn JwsVerifier>, KeyError> {
        verifier(&self.jwk, algorithm).ok_or(match KeyType::for_algorithm(algorithm) {
            KeyType::Rsa => KeyError::Malformed,
            KeyType::P256 | KeyType::P384 | KeyType::P521 | KeyType::Ed25519 => KeyError::Point,
        })
    }
}

/// Decodes an unsigned integer of at most `max_len` bytes (RFC 7518 section 2, Base64urlUInt). One
/// leading zero byte, which some issuers send, is removed (RFC 7518 section 6.3.1.1).
fn decode_integer(
    encoded: Option<&str>,
    max_len: usize,
    too_long: KeyError,
) -> Result<Vec<u8>, KeyError> {
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
    bytes
        .first()
        .map_or(0, |first| bytes.len() * 8 - first.leading_zeros() as usize)
}

fn is_odd(bytes: &[u8]) -> bool {
    bytes.last().is_some_and(|last| last % 2 == 1)
}

/// Creates a JWK of these members, encoded canonically.
fn josekit_jwk<'n>(
    kty: &str,
    members: impl IntoIterator<Item = (&'n str, Vec<u8>)>,
) -> Result<JosekitJwk, KeyError> {
    let mut jwk = JosekitJwk::new(kty);
    for (name, bytes) in members {
        let mut encoded = String::new();
        encoding::encode_to(bytes, &mut encoded);
        jwk.set_parameter(name, Some(encoded.into()))
            .map_err(|_| KeyError::Malformed)?;
    }
    Ok(jwk)
}
