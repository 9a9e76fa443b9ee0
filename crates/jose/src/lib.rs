//! Strict JSON Web Signatures over a closed algorithm set.
mod algorithm;
mod compact;
mod encoding;
mod error;
mod header;
mod key;
mod key_set;
mod signing_key;

pub use algorithm::{Algorithm, AlgorithmSet};
pub use compact::Compact;
pub use error::{JoseError, KeyError, SigningError};
pub use header::Header;
pub use key_set::{KeySet, MAX_KEYS, RejectedKey, VerifiedPayload};
pub use signing_key::SigningKey;
