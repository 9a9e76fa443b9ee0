//! [`JoseError`], [`KeyError`] and [`SigningError`]: why a token or a key is rejected, or cannot be
//! created.

use portcullis_reason_codes::ReasonCodes;

use crate::{
    algorithm::{Algorithm, UnsupportedAlgorithm},
    limits::MAX_KEYS,
};

/// Why a token is rejected. No variant contains a part of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum JoseError {
    /// The token is longer than the caller allows. It was not parsed.
    #[error("the token is longer than {limit} bytes")]
    #[code = "token.too_large"]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The token does not have three segments, its header or payload is not canonical, unpadded
    /// base64url, or its signature is empty (RFC 7515 section 7.1).
    #[error("the token is not a compact JSON Web Signature")]
    #[code = "token.malformed"]
    Malformed,
    /// The token is encrypted: it has five segments, or the header has `enc`.
    #[error("the token is encrypted")]
    #[code = "token.encrypted"]
    Encrypted,
    /// The header is not a JSON object of at most 64 members, has no `alg`, or `alg`, `kid` or
    /// `typ` is not a string.
    #[error("the token's header is malformed")]
    #[code = "token.header_malformed"]
    MalformedHeader,
    /// The header has a duplicate member (RFC 7515 section 4).
    #[error("the token's header has a duplicate member")]
    #[code = "token.header_duplicate"]
    DuplicateMember,
    /// The header requires an extension with `crit` or `b64` (RFC 7515 section 4.1.11, RFC 7797).
    /// None is supported.
    #[error("the token's header requires an extension")]
    #[code = "token.header_extension"]
    UnsupportedExtension,
    /// The `alg` is `none`, HMAC or unknown.
    #[error("the signature algorithm is not supported")]
    #[code = "token.algorithm_unsupported"]
    UnsupportedAlgorithm,
    /// The `alg` is supported but not allowed for these keys.
    #[error("the signature algorithm {0} is not allowed here")]
    #[code = "token.algorithm_not_allowed"]
    AlgorithmNotAllowed(Algorithm),
    /// No published key has this `kid` and `alg`. The issuer may have rotated its keys, so a caller
    /// may fetch them again.
    #[error("no key is published for the token's key identifier and algorithm")]
    #[code = "token.key_unknown"]
    UnknownKey,
    /// More than one published key matches. None is tried.
    #[error("more than one published key matches the token")]
    #[code = "token.key_ambiguous"]
    AmbiguousKey,
    /// The signature was not made with the matching key, or is not canonical base64url of the key's
    /// signature length.
    #[error("the signature does not verify")]
    #[code = "token.signature"]
    Signature,
}

impl From<UnsupportedAlgorithm> for JoseError {
    fn from(UnsupportedAlgorithm: UnsupportedAlgorithm) -> Self {
        Self::UnsupportedAlgorithm
    }
}

/// Why a published key or a whole key set is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum KeyError {
    /// The set has more than [`MAX_KEYS`] keys.
    #[error("the set has {found} keys, more than the limit of {MAX_KEYS}")]
    #[code = "keys.too_many"]
    TooManyKeys {
        /// The number of keys, including unusable ones.
        found: usize,
    },
    /// The key's `use` is not `sig`, or its `key_ops` lacks `verify`.
    #[error("the key is not for verifying signatures")]
    #[code = "key.not_for_signatures"]
    NotForSignatures,
    /// The key's `alg` is not a supported signature algorithm.
    #[error("the key's algorithm is not supported")]
    #[code = "key.algorithm_unsupported"]
    UnsupportedAlgorithm,
    /// The key cannot be used with any allowed algorithm.
    #[error("the key cannot be used with an allowed algorithm")]
    #[code = "key.algorithm_not_allowed"]
    AlgorithmNotAllowed,
    /// The key's `kty` or `crv` is not supported.
    #[error("the key's type or curve is not supported")]
    #[code = "key.type_unsupported"]
    UnsupportedType,
    /// The key's `alg` needs another key type or curve.
    #[error("the key's algorithm needs another key type or curve")]
    #[code = "key.mismatch"]
    Mismatch,
    /// A required member is missing or not canonical base64url.
    #[error("a member of the key is missing or malformed")]
    #[code = "key.malformed"]
    Malformed,
    /// The RSA modulus is even or does not have 2048 to 8192 bits.
    #[error("the RSA modulus is not an odd number of 2048 to 8192 bits")]
    #[code = "key.modulus"]
    Modulus,
    /// The RSA exponent is even, below 65537, or 2^32 or more.
    #[error("the RSA exponent is not an odd number from 65537 to 2^32")]
    #[code = "key.exponent"]
    Exponent,
    /// The coordinates have the wrong length, are not a point on the curve, or are an Ed25519 point
    /// of small order or in a non-canonical encoding.
    #[error("the key is not a valid point on its curve")]
    #[code = "key.point"]
    Point,
}

/// Why a key or a signature could not be created. No variant contains a part of the key or the
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum SigningError {
    /// The key could not be generated.
    #[error("the key could not be generated")]
    #[code = "signing.generation"]
    Generation,
    /// The signature could not be created.
    #[error("the signature could not be created")]
    #[code = "signing.signature"]
    Signature,
    /// The input is not a private key for the algorithm.
    #[error("the private key is malformed or does not match the algorithm")]
    #[code = "signing.import"]
    Import,
}
