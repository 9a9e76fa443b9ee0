use crate::Algorithm;

/// Why a token was not taken. No variant holds any part of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoseError {
    /// It is longer than the caller allows; nothing of it was looked at.
    #[error("the token is longer than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// It is not three segments of unpadded, canonical base64url with a header and a signature (RFC 7515 section 7.1).
    #[error("the token is no compact JSON Web Signature")]
    Malformed,
    /// It is an encrypted token (five segments, or an `enc` member in the header).
    #[error("the token is encrypted")]
    Encrypted,
    /// The header is not one JSON object of at most 64 members, or its `alg`, `kid` or `typ` is not a string, or it
    /// has no `alg`.
    #[error("the token's header is malformed")]
    Header,
    /// A member of the header occurs twice (RFC 7515 section 4).
    #[error("the token's header has a member twice")]
    DuplicateMember,
    /// The header has `crit` or `b64`: an extension that would have to be understood (RFC 7515 section 4.1.11, RFC 7797).
    #[error("the token's header asks for an extension")]
    Extension,
    /// The `alg` is `none`, HMAC, or not known.
    #[error("the signature algorithm is not supported")]
    UnsupportedAlgorithm,
    /// The `alg` is known and not among those allowed for these keys.
    #[error("the signature algorithm {0} is not allowed here")]
    AlgorithmNotAllowed(Algorithm),
    /// No published key has this `kid` and `alg`. The keys may have been rotated since: a caller may fetch them anew.
    #[error("no key is published for the token's key identifier and algorithm")]
    UnknownKey,
    /// More than one published key fits, so that none is tried.
    #[error("more than one published key fits the token")]
    AmbiguousKey,
    /// The signature is not that of the key.
    #[error("the signature does not verify")]
    Signature,
}

impl JoseError {
    /// A stable name for logs and metrics.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "token.too_large",
            Self::Malformed => "token.malformed",
            Self::Encrypted => "token.encrypted",
            Self::Header => "token.header_malformed",
            Self::DuplicateMember => "token.header_duplicate",
            Self::Extension => "token.header_extension",
            Self::UnsupportedAlgorithm => "token.algorithm_unsupported",
            Self::AlgorithmNotAllowed(_) => "token.algorithm_not_allowed",
            Self::UnknownKey => "token.key_unknown",
            Self::AmbiguousKey => "token.key_ambiguous",
            Self::Signature => "token.signature",
        }
    }
}

/// Why a published key, or a whole set of keys, was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The set has more keys than [`MAX_KEYS`](crate::MAX_KEYS).
    #[error("the set has {found} keys, more than the {limit} that are taken", limit = crate::MAX_KEYS)]
    TooManyKeys {
        /// How many there are, unusable ones included.
        found: usize,
    },
    /// Its `use` is not `sig`, or its `key_ops` lacks `verify`.
    #[error("the key is not for verifying signatures")]
    NotForSignatures,
    /// Its `alg` is no supported signature algorithm.
    #[error("the key's algorithm is not supported")]
    UnsupportedAlgorithm,
    /// No allowed algorithm fits the key.
    #[error("the key fits no allowed algorithm")]
    AlgorithmNotAllowed,
    /// Its `kty` or `crv` is not supported.
    #[error("the key's type or curve is not supported")]
    UnsupportedType,
    /// Its `alg` belongs to another type of key, or to another curve.
    #[error("the key's algorithm belongs to another type of key")]
    Mismatch,
    /// A member that the type needs is missing, or not canonical base64url.
    #[error("the key lacks a member, or has one that does not decode")]
    Malformed,
    /// The RSA modulus is even, or not of 2048 to 8192 bits.
    #[error("the RSA modulus is not of 2048 to 8192 bits")]
    Modulus,
    /// The RSA exponent is even, below 65537, or not below 2^32.
    #[error("the RSA exponent is not an odd number from 65537 to 2^32")]
    Exponent,
    /// The coordinates are not of the curve's length, or not a point of it that can belong to a private key.
    #[error("the key is no sound point of its curve")]
    Point,
}

impl KeyError {
    /// A stable name for logs and metrics.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooManyKeys { .. } => "keys.too_many",
            Self::NotForSignatures => "key.not_for_signatures",
            Self::UnsupportedAlgorithm => "key.algorithm_unsupported",
            Self::AlgorithmNotAllowed => "key.algorithm_not_allowed",
            Self::UnsupportedType => "key.type_unsupported",
            Self::Mismatch => "key.mismatch",
            Self::Malformed => "key.malformed",
            Self::Modulus => "key.modulus",
            Self::Exponent => "key.exponent",
            Self::Point => "key.point",
        }
    }
}

/// Why a signature could not be made. It says nothing of the key or the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// The key could not be generated.
    #[error("the key could not be generated")]
    Generation,
    /// The signature could not be made.
    #[error("the signature could not be made")]
    Signature,
    /// What was given is no private key for the algorithm.
    #[error("the private key cannot be read, or does not fit the algorithm")]
    Import,
}

impl SigningError {
    /// A stable name for logs and metrics.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Generation => "signing.generation",
            Self::Signature => "signing.signature",
            Self::Import => "signing.import",
        }
    }
}
