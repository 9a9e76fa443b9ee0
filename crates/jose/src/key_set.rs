use std::fmt;

use portcullis_metadata::JwkSet;

use crate::{Algorithm, AlgorithmSet, Compact, JoseError, KeyError, key::VerifyingKey};

/// How many keys a published set may have; a larger one is not taken.
pub const MAX_KEYS: usize = 100;

/// The published keys of one issuer, ready to verify.
///
/// Each is pinned to its key identifier and algorithm. A key that names no algorithm stands for every allowed
/// one that fits its type. Built once and shared: no verification builds anything of a key again.
#[derive(Clone, Default)]
pub struct KeySet {
    allowed: AlgorithmSet,
    keys: Vec<NamedKey>,
}

#[derive(Clone)]
struct NamedKey {
    kid: Option<Box<str>>,
    key: VerifyingKey,
}

/// A key of a published set that was not taken, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedKey {
    /// Its identifier, if it has one.
    pub kid: Option<String>,
    /// Why it was not taken.
    pub reason: KeyError,
}

impl KeySet {
    /// Imports the keys that are for verifying signatures with one of the `allowed` algorithms. A bad key costs
    /// only itself.
    ///
    /// What is enforced: a key's own `alg`, `use` and `key_ops`; RSA moduli of 2048 to 8192 bits, exponents odd
    /// and from 65537 to 2^32; points that lie on the claimed curve, with coordinates of its length; Ed25519 keys
    /// in their one encoding and not of small order (one that is no point is taken, and verifies nothing). Keys
    /// published with their private part were refused when the [`JwkSet`] was read.
    ///
    /// # Errors
    /// [`KeyError::TooManyKeys`] for a set of more than [`MAX_KEYS`].
    pub fn from_jwks(jwks: &JwkSet, allowed: AlgorithmSet) -> Result<(Self, Vec<RejectedKey>), KeyError> {
        let found = jwks.keys.len().saturating_add(jwks.rejected.len());
        if found > MAX_KEYS {
            return Err(KeyError::TooManyKeys { found });
        }
        let mut keys = Vec::new();
        let mut rejected = Vec::new();
        for jwk in &jwks.keys {
            match VerifyingKey::import(jwk, allowed) {
                Ok(imported) => keys
                    .extend(imported.into_iter().map(|key| NamedKey { kid: jwk.kid.as_deref().map(Box::from), key })),
                Err(reason) => rejected.push(RejectedKey { kid: jwk.kid.clone(), reason }),
            }
        }
        Ok((Self { allowed, keys }, rejected))
    }

    /// How many pairs of key and algorithm there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key, so that nothing verifies.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a key is published for this identifier and algorithm.
    pub fn knows_kid(&self, kid: &str, algorithm: Algorithm) -> bool {
        self.keys.iter().any(|named| named.key.algorithm() == algorithm && named.kid.as_deref() == Some(kid))
    }

    /// Whether there is one key that the token's signature would be verified with.
    pub fn holds_key_of(&self, token: &Compact<'_>) -> bool {
        self.find(token.header().kid(), token.header().alg()).is_ok()
    }

    /// Verifies the signature with the one key that is published for the token's `kid` and `alg`; without `kid`,
    /// with the one key that fits the algorithm.
    ///
    /// It judges the signature alone: neither `typ` nor any claim.
    ///
    /// # Errors
    /// [`JoseError::AlgorithmNotAllowed`], [`JoseError::UnknownKey`], [`JoseError::AmbiguousKey`] or
    /// [`JoseError::Signature`].
    pub fn verify<'t>(&self, token: &'t Compact<'_>) -> Result<VerifiedPayload<'t>, JoseError> {
        let header = token.header();
        let key = self.find(header.kid(), header.alg())?;
        if key.verifies(token.signed(), token.signature()) {
            Ok(VerifiedPayload(token.unverified_payload()))
        } else {
            Err(JoseError::Signature)
        }
    }

    fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&VerifyingKey, JoseError> {
        if !self.allowed.contains(algorithm) {
            return Err(JoseError::AlgorithmNotAllowed(algorithm));
        }
        let mut fitting = self.keys.iter().filter(|named| {
            named.key.algorithm() == algorithm && kid.is_none_or(|kid| named.kid.as_deref() == Some(kid))
        });
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(&only.key),
            (Some(_), Some(_)) => Err(JoseError::AmbiguousKey),
            (None, _) => Err(JoseError::UnknownKey),
        }
    }
}

/// Shows identifiers and algorithms, no key material.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|named| (&named.kid, named.key.algorithm()))).finish()
    }
}

/// The payload of a token whose signature verified. Only [`KeySet::verify`] makes one.
///
/// `Debug` does not show the bytes.
#[derive(Clone, Copy)]
pub struct VerifiedPayload<'t>(&'t [u8]);

impl<'t> VerifiedPayload<'t> {
    /// The bytes that were signed, decoded. Any bytes: they need not be JSON.
    pub fn bytes(&self) -> &'t [u8] {
        self.0
    }
}

impl fmt::Debug for VerifiedPayload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifiedPayload([{} bytes])", self.0.len())
    }
}
