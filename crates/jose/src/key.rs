//! Published keys: from a JWK to a verifier that is built once.

use std::sync::Arc;

use josekit::{
    jwk::Jwk as JosekitJwk,
    jws::{ES256, ES384, ES512, EdDSA, JwsVerifier, PS256, PS384, PS512, RS256, RS384, RS512},
};
use portcullis_metadata::Jwk;

use crate::{Algorithm, AlgorithmSet, KeyError, ed25519, encoding};

/// Holds the longest signature there is: that of an RSA key of 8192 bits.
const SIGNATURE_BUFFER: usize = MAX_MODULUS_BITS / 8;
const MIN_MODULUS_BITS: usize = 2048;
const MAX_MODULUS_BITS: usize = 8192;
const MIN_EXPONENT: u64 = 65537;

/// One public key, pinned to one algorithm. Cheap to clone.
#[derive(Clone)]
pub(crate) struct VerifyingKey {
    algorithm: Algorithm,
    signature_len: usize,
    verifier: Arc<dyn JwsVerifier>,
}

impl VerifyingKey {
    /// Imports a key for each allowed algorithm that it may be used with: one, unless it is an RSA key without `alg`.
    pub(crate) fn import(jwk: &Jwk, allowed: AlgorithmSet) -> Result<Vec<Self>, KeyError> {
        if !is_for_verifying(jwk) {
            return Err(KeyError::NotForSignatures);
        }
        let pinned = jwk.alg.as_deref().map(str::parse::<Algorithm>).transpose();
        let pinned = pinned.map_err(|_| KeyError::UnsupportedAlgorithm)?;
        let kind = Kind::of(jwk)?;
        if pinned.is_some_and(|algorithm| kind != Kind::needed_by(algorithm)) {
            return Err(KeyError::Mismatch);
        }
        let usable: AlgorithmSet = allowed
            .iter()
            .filter(|algorithm| pinned.is_none_or(|pinned| pinned == *algorithm) && kind == Kind::needed_by(*algorithm))
            .collect();
        if usable.is_empty() {
            return Err(KeyError::AlgorithmNotAllowed);
        }
        let material = Material::read(jwk, kind)?;
        usable.iter().map(|algorithm| material.verifier(algorithm)).collect()
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Whether the base64url text is this key's signature of the message.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        if encoding::decoded_len(signature.len()) != Some(self.signature_len) {
            return false;
        }
        let mut buffer = [0; SIGNATURE_BUFFER];
        encoding::decode_into(signature, &mut buffer)
            .is_some_and(|signature| self.verifier.verify(message, signature).is_ok())
    }
}

fn is_for_verifying(jwk: &Jwk) -> bool {
    jwk.use_.as_deref().is_none_or(|key_use| key_use == "sig")
        && jwk.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|operation| operation == "verify"))
}

/// What an algorithm needs of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    P521,
    Ed25519,
}

impl Kind {
    fn of(jwk: &Jwk) -> Result<Self, KeyError> {
        match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Ok(Self::Rsa),
            ("EC", Some("P-256")) => Ok(Self::P256),
            ("EC", Some("P-384")) => Ok(Self::P384),
            ("EC", Some("P-521")) => Ok(Self::P521),
            ("OKP", Some("Ed25519")) => Ok(Self::Ed25519),
            _ => Err(KeyError::UnsupportedType),
        }
    }

    const fn needed_by(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Rs256 | Algorithm::Rs384 | Algorithm::Rs512 => Self::Rsa,
            Algorithm::Ps256 | Algorithm::Ps384 | Algorithm::Ps512 => Self::Rsa,
            Algorithm::Es256 => Self::P256,
            Algorithm::Es384 => Self::P384,
            Algorithm::Es512 => Self::P521,
            Algorithm::EdDsa => Self::Ed25519,
        }
    }

    /// The length of one coordinate in bytes (RFC 7518 section 6.2.1, RFC 8037 section 2).
    const fn coordinate_len(self) -> usize {
        match self {
            Self::Rsa => 0,
            Self::P256 | Self::Ed25519 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

/// Key material that was judged, in the form that josekit imports: no `kid`, `alg`, `use` or private member.
struct Material {
    jwk: JosekitJwk,
    signature_len: usize,
}

impl Material {
    fn read(jwk: &Jwk, kind: Kind) -> Result<Self, KeyError> {
        match kind {
            Kind::Rsa => Self::rsa(jwk),
            Kind::P256 | Kind::P384 | Kind::P521 => Self::point(jwk, kind, "EC", &[("x", &jwk.x), ("y", &jwk.y)]),
            Kind::Ed25519 => Self::point(jwk, kind, "OKP", &[("x", &jwk.x)]),
        }
    }

    fn rsa(jwk: &Jwk) -> Result<Self, KeyError> {
        let modulus = integer(jwk.n.as_deref(), MAX_MODULUS_BITS / 8, KeyError::Modulus)?;
        let exponent = integer(jwk.e.as_deref(), size_of::<u32>(), KeyError::Exponent)?;
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

    fn point(jwk: &Jwk, kind: Kind, kty: &str, members: &[(&str, &Option<String>)]) -> Result<Self, KeyError> {
        let mut coordinates = Vec::with_capacity(members.len());
        for (name, text) in members {
            let coordinate =
                encoding::decode(text.as_deref().ok_or(KeyError::Malformed)?).ok_or(KeyError::Malformed)?;
            if coordinate.len() != kind.coordinate_len() {
                return Err(KeyError::Point);
            }
            if kind == Kind::Ed25519 && !coordinate.first_chunk().is_some_and(ed25519::is_sound) {
                return Err(KeyError::Point);
            }
            coordinates.push((*name, coordinate));
        }
        let mut josekit = josekit_jwk(kty, coordinates)?;
        josekit.set_parameter("crv", jwk.crv.clone().map(Into::into)).map_err(|_| KeyError::Malformed)?;
        Ok(Self { jwk: josekit, signature_len: 2 * kind.coordinate_len() })
    }

    fn verifier(&self, algorithm: Algorithm) -> Result<VerifyingKey, KeyError> {
        fn shared<V: JwsVerifier + 'static, E>(verifier: Result<V, E>) -> Option<Arc<dyn JwsVerifier>> {
            verifier.ok().map(|verifier| Arc::new(verifier) as Arc<dyn JwsVerifier>)
        }
        let jwk = &self.jwk;
        let verifier = match algorithm {
            Algorithm::Rs256 => shared(RS256.verifier_from_jwk(jwk)),
            Algorithm::Rs384 => shared(RS384.verifier_from_jwk(jwk)),
            Algorithm::Rs512 => shared(RS512.verifier_from_jwk(jwk)),
            Algorithm::Ps256 => shared(PS256.verifier_from_jwk(jwk)),
            Algorithm::Ps384 => shared(PS384.verifier_from_jwk(jwk)),
            Algorithm::Ps512 => shared(PS512.verifier_from_jwk(jwk)),
            Algorithm::Es256 => shared(ES256.verifier_from_jwk(jwk)),
            Algorithm::Es384 => shared(ES384.verifier_from_jwk(jwk)),
            Algorithm::Es512 => shared(ES512.verifier_from_jwk(jwk)),
            Algorithm::EdDsa => shared(EdDSA.verifier_from_jwk(jwk)),
        };
        let verifier = verifier.ok_or(match Kind::needed_by(algorithm) {
            Kind::Rsa => KeyError::Malformed,
            _ => KeyError::Point,
        })?;
        Ok(VerifyingKey { algorithm, signature_len: self.signature_len, verifier })
    }
}

/// An unsigned integer of at most `max_len` bytes (RFC 7518 section 2, Base64urlUInt). One leading zero byte is
/// taken off: some issuers write it (RFC 7518 section 6.3.1.1).
fn integer(text: Option<&str>, max_len: usize, too_long: KeyError) -> Result<Vec<u8>, KeyError> {
    let text = text.ok_or(KeyError::Malformed)?;
    if encoding::decoded_len(text.len()).ok_or(KeyError::Malformed)? > max_len + 1 {
        return Err(too_long);
    }
    let mut bytes = encoding::decode(text).ok_or(KeyError::Malformed)?;
    if bytes.first() == Some(&0) {
        bytes.remove(0);
    }
    match bytes.first() {
        None | Some(0) => Err(KeyError::Malformed),
        Some(_) if bytes.len() > max_len => Err(too_long),
        Some(_) => Ok(bytes),
    }
}

/// The exact length in bits of an integer without leading zero bytes.
fn bit_len(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |first| bytes.len() * 8 - first.leading_zeros() as usize)
}

fn is_odd(bytes: &[u8]) -> bool {
    bytes.last().is_some_and(|last| last % 2 == 1)
}

fn josekit_jwk<'n>(kty: &str, members: impl IntoIterator<Item = (&'n str, Vec<u8>)>) -> Result<JosekitJwk, KeyError> {
    let mut jwk = JosekitJwk::new(kty);
    for (name, bytes) in members {
        let mut text = String::new();
        encoding::encode_to(bytes, &mut text);
        jwk.set_parameter(name, Some(text.into())).map_err(|_| KeyError::Malformed)?;
    }
    Ok(jwk)
}

#[cfg(test)]
mod vectors;
