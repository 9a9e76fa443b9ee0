//! [`KeyType`]: the type and curve of a key.

use portcullis_metadata::Jwk;

use crate::{algorithm::Algorithm, error::KeyError};

/// The key type and curve that an algorithm needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyType {
    Rsa,
    P256,
    P384,
    P521,
    Ed25519,
}

impl KeyType {
    /// Returns the type of a JWK. Fails with [`KeyError::UnsupportedType`] for other types and
    /// curves.
    pub(crate) fn from_jwk(jwk: &Jwk) -> Result<Self, KeyError> {
        match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Ok(Self::Rsa),
            ("EC", Some("P-256")) => Ok(Self::P256),
            ("EC", Some("P-384")) => Ok(Self::P384),
            ("EC", Some("P-521")) => Ok(Self::P521),
            ("OKP", Some("Ed25519")) => Ok(Self::Ed25519),
            _ => Err(KeyError::UnsupportedType),
        }
    }

    /// Returns the type that an algorithm needs.
    pub(crate) const fn for_algorithm(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Rs256 | Algorithm::Rs384 | Algorithm::Rs512 => Self::Rsa,
            Algorithm::Ps256 | Algorithm::Ps384 | Algorithm::Ps512 => Self::Rsa,
            Algorithm::Es256 => Self::P256,
            Algorithm::Es384 => Self::P384,
            Algorithm::Es512 => Self::P521,
            Algorithm::EdDsa => Self::Ed25519,
        }
    }

    /// Returns the length of a coordinate in bytes (RFC 7518 section 6.2.1, RFC 8037 section 2), or
    /// 0 for RSA.
    pub(crate) const fn coordinate_len(self) -> usize {
        match self {
            Self::Rsa => 0,
            Self::P256 | Self::Ed25519 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}
