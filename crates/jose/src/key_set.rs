//! [`KeySet`]: the published keys of one issuer.

use std::fmt;

use portcullis_metadata::JwkSet;

use crate::{
    algorithm::{Algorithm, AlgorithmSet},
    compact::CompactJws,
    error::{JoseError, KeyError},
    key::VerifyingKey,
    limits::MAX_KEYS,
};

/// The imported public keys of one issuer.
///
/// Each key is bound to its identifier and algorithm. A key without `alg` can be used with every
/// allowed algorithm for its type. Import a set once and share it: verification does not import
/// keys again.
#[derive(Clone, Default)]
pub struct KeySet {
    allowed: AlgorithmSet,
    keys: Vec<NamedKey>,
}

/// A key and its identifier in the published set.
#[derive(Clone)]
struct NamedKey {
    kid: Option<Box<str>>,
    key: VerifyingKey,
}

/// A key of a published set that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedKey {
    /// The key identifier, if any.
    pub kid: Option<String>,
    /// Why the key was rejected.
    pub reason: KeyError,
}

impl KeySet {
    /// Imports the keys that can verify signatures with one of the `allowed` algorithms. Invalid
    /// keys are returned in the second part and do not affect the others.
    ///
    /// These rules are enforced:
    ///
    /// - `alg`, `use` and `key_ops`, if present, allow the use of the key.
    /// - RSA moduli have 2048 to 8192 bits. RSA exponents are odd and from 65537 to 2^32.
    /// - EC coordinates have the curve's length and are a point on the curve.
    /// - Ed25519 keys have a canonical encoding and do not have a small order. A key that is not a
    ///   point is accepted, but no signature verifies with it.
    ///
    /// [`JwkSet::parse`] has already rejected keys with private members.
    ///
    /// # Errors
    /// Fails with [`KeyError::TooManyKeys`] if the set has more than [`MAX_KEYS`] keys.
    pub fn from_jwks(
        jwks: &JwkSet,
        allowed: AlgorithmSet,
    ) -> Result<(Self, Vec<RejectedKey>), KeyError> {
        let found = jwks.keys.len().saturating_add(jwks.rejected.len());
        if found > MAX_KEYS {
            return Err(KeyError::TooManyKeys { found });
        }
        let mut keys = Vec::new();
        let mut rejected = Vec::new();
        for jwk in &jwks.keys {
            match VerifyingKey::import(jwk, allowed) {
                Ok(imported) => keys.extend(imported.into_iter().map(|key| NamedKey {
                    kid: jwk.kid.as_deref().map(Box::from),
                    key,
                })),
                Err(reason) => rejected.push(RejectedKey {
                    kid: jwk.kid.clone(),
                    reason,
                }),
            }
        }
        Ok((Self { allowed, keys }, rejected))
    }

    /// Returns the number of pairs of key and algorithm.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether the set has no key. No token verifies with an empty set.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns whether exactly one key matches the token. Does not verify the signature.
    pub fn has_key_for(&self, token: &CompactJws<'_>) -> bool {
        self.find(token.header().kid(), token.header().alg())
            .is_ok()
    }

    /// Verifies a token's signature with the only key that has the token's `kid` and `alg`. If the
    /// token has no `kid`, it is the only key that has its `alg`.
    ///
    /// Checks neither `typ` nor any claim.
    ///
    /// # Errors
    /// Fails with [`JoseError::AlgorithmNotAllowed`], [`JoseError::UnknownKey`],
    /// [`JoseError::AmbiguousKey`] or [`JoseError::Signature`].
    pub fn verify<'t>(&self, token: &'t CompactJws<'_>) -> Result<VerifiedPayload<'t>, JoseError> {
        let header = token.header();
        let key = self.find(header.kid(), header.alg())?;
        if key.verifies(token.signing_input(), token.signature()) {
            Ok(VerifiedPayload(token.unverified_payload()))
        } else {
            Err(JoseError::Signature)
        }
    }

    /// Returns the only key with this identifier and algorithm.
    fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&VerifyingKey, JoseError> {
        if !self.allowed.contains(algorithm) {
            return Err(JoseError::AlgorithmNotAllowed(algorithm));
        }
        let mut matching = self.keys.iter().filter(|named| {
            named.key.algorithm() == algorithm
                && kid.is_none_or(|kid| named.kid.as_deref() == Some(kid))
        });
        match (matching.next(), matching.next()) {
            (Some(only), None) => Ok(&only.key),
            (Some(_), Some(_)) => Err(JoseError::AmbiguousKey),
            (None, _) => Err(JoseError::UnknownKey),
        }
    }
}

/// Prints the identifiers and algorithms, but no key material.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(
                self.keys
                    .iter()
                    .map(|named| (&named.kid, named.key.algorithm())),
            )
            .finish()
    }
}

/// The payload of a token with a valid signature. Only [`KeySet::verify`] creates it.
///
/// `Debug` does not print the bytes.
#[derive(Clone, Copy)]
pub struct VerifiedPayload<'t>(&'t [u8]);

impl<'t> VerifiedPayload<'t> {
    /// Returns the decoded payload. It need not be JSON.
    pub fn bytes(&self) -> &'t [u8] {
        self.0
    }
}

impl fmt::Debug for VerifiedPayload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifiedPayload([{} bytes])", self.0.len())
    }
}
