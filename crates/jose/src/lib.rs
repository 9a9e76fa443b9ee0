//! Strict JSON Web Signatures for access tokens, over a closed set of algorithms.
//!
//! A token's way has three steps, each a type that cannot be had otherwise:
//!
//! 1. [`Compact::parse`] takes the text apart. Whatever is no plain signed token is refused here: too long, not
//!    three segments of canonical base64url, a header with a member twice, with `crit`, `b64` or `enc`, with `none`,
//!    HMAC or an unknown `alg`.
//! 2. [`KeySet::from_jwks`] imports what an issuer published, once. A key is pinned to its identifier and algorithm;
//!    weak, misused and malformed keys are rejected one by one.
//! 3. [`KeySet::verify`] checks the signature with the one key that the token's `kid` and `alg` name, and gives out a
//!    [`VerifiedPayload`].
//!
//! Claims are nobody's business here: issuer, audience, times and `typ` are still to be judged. A token's own `jku`,
//! `x5u`, `jwk` and `x5c` are ignored; keys come from the set alone.
//!
//! [`SigningKey`] is the other side, for authorization servers in development, for clients that authenticate with a
//! key, and for tests. [`DpopKey`] makes a client's DPoP proofs (RFC 9449).
//!
//! ```
//! use portcullis_jose::{Algorithm, AlgorithmSet, Compact, JoseError, KeySet, SigningKey};
//! use portcullis_metadata::JwkSet;
//!
//! // An issuer signs, and publishes its public key.
//! let key = SigningKey::generate(Algorithm::Es256, "2026-01")?;
//! let token = key.sign("at+jwt", br#"{"sub":"alice"}"#)?;
//! let published = serde_json::json!({ "keys": [key.public_jwk()] }).to_string();
//!
//! // A resource server imports the keys once, and verifies many tokens.
//! let allowed = AlgorithmSet::default().with(Algorithm::Es256);
//! let (keys, rejected) = KeySet::from_jwks(&JwkSet::parse(published.as_bytes())?, allowed)?;
//! assert!(rejected.is_empty());
//! let payload = keys.verify(&Compact::parse(&token, 16 * 1024)?)?.bytes().to_vec();
//! assert_eq!(payload, br#"{"sub":"alice"}"#);
//!
//! // Somebody else's signature under the same name is refused.
//! let forged = SigningKey::generate(Algorithm::Es256, "2026-01")?.sign("at+jwt", b"{}")?;
//! let refused = keys.verify(&Compact::parse(&forged, 16 * 1024)?).unwrap_err();
//! assert_eq!(refused, JoseError::Signature);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The feature `vendored`, on by default, builds OpenSSL from source; without it the system's is linked.

mod algorithm;
mod compact;
mod dpop_key;
mod ed25519;
mod encoding;
mod error;
mod header;
mod key;
mod key_set;
mod received_proof;
mod signing_key;

pub use algorithm::{Algorithm, AlgorithmSet};
pub use compact::{Compact, KnownHeader};
pub use dpop_key::{DpopKey, DpopProof};
pub use error::{JoseError, KeyError, SigningError};
pub use header::Header;
pub use key_set::{KeySet, MAX_KEYS, RejectedKey, VerifiedPayload};
pub use received_proof::{ProofError, ReceivedProof};
pub use signing_key::SigningKey;

#[cfg(test)]
mod tests;
