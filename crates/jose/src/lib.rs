#![doc = include_str!("../README.md")]

mod algorithm;
mod compact;
mod dpop_key;
mod ed25519;
mod encoding;
mod error;
mod first_use;
mod header;
mod key;
mod key_set;
mod key_type;
mod limits;
mod provider;
mod received_proof;
mod signing_key;
mod thumbprint;

pub use algorithm::{Algorithm, AlgorithmSet, UnsupportedAlgorithm};
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
