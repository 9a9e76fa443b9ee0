//! Strict JSON Web Signatures for access tokens, over a closed set of algorithms.
//!
//! Verification has three steps. Each step returns a type that only this step can create:
//!
//! 1. [`CompactJws::parse`] splits the token. It rejects a token that is too long or encrypted, that is not three segments
//!    of canonical base64url, whose header has a duplicate member, `crit`, `b64` or `enc`, or whose `alg` is `none`,
//!    HMAC or unknown.
//! 2. [`KeySet::from_jwks`] imports the published keys of an issuer once. A key is bound to its identifier and algorithm.
//!    Weak, misused and malformed keys are rejected individually.
//! 3. [`KeySet::verify`] verifies the signature with the only key that matches the token's `kid` and `alg`, and returns
//!    a [`VerifiedPayload`].
//!
//! The crate does not check claims. The caller checks the issuer, audience, times and `typ`. The header members `jku`,
//! `x5u`, `jwk` and `x5c` are ignored: keys come only from the set.
//!
//! [`SigningKey`] signs tokens, for development authorization servers, for clients that authenticate with a key, and for
//! tests. [`DpopKey`] creates DPoP proofs (RFC 9449), and [`ReceivedProof`] verifies them.
//!
//! ```
//! use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, JoseError, KeySet, SigningKey};
//! use portcullis_metadata::JwkSet;
//!
//! // An issuer signs a token and publishes its public key.
//! let key = SigningKey::generate(Algorithm::Es256, "2026-01")?;
//! let token = key.sign("at+jwt", br#"{"sub":"alice"}"#)?;
//! let published = serde_json::json!({ "keys": [key.public_jwk()] }).to_string();
//!
//! // A resource server imports the keys once and verifies many tokens.
//! let allowed = AlgorithmSet::default().with(Algorithm::Es256);
//! let (keys, rejected) = KeySet::from_jwks(&JwkSet::parse(published.as_bytes())?, allowed)?;
//! assert!(rejected.is_empty());
//! let payload = keys.verify(&CompactJws::parse(&token, 16 * 1024)?)?.bytes().to_vec();
//! assert_eq!(payload, br#"{"sub":"alice"}"#);
//!
//! // A signature by another key with the same identifier is rejected.
//! let forged = SigningKey::generate(Algorithm::Es256, "2026-01")?.sign("at+jwt", b"{}")?;
//! let error = keys.verify(&CompactJws::parse(&forged, 16 * 1024)?).unwrap_err();
//! assert_eq!(error, JoseError::Signature);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The system's OpenSSL is linked, unless the feature `vendored` is on: it builds OpenSSL from source.

mod algorithm;
mod compact;
mod dpop_key;
mod ed25519;
mod encoding;
mod error;
mod header;
mod key;
mod key_set;
mod limits;
mod received_proof;
mod signing_key;

pub use algorithm::{Algorithm, AlgorithmSet};
pub use compact::CompactJws;
pub use dpop_key::{DpopKey, DpopProof};
pub use error::{JoseError, KeyError, SigningError};
pub use header::Header;
pub use key_set::{KeySet, RejectedKey, VerifiedPayload};
pub use limits::MAX_KEYS;
pub use received_proof::{ProofError, ReceivedProof};
pub use signing_key::SigningKey;

#[cfg(test)]
mod tests;
