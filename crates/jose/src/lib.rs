//! Strict JSON Web Signatures over a closed algorithm set.
mod algorithm;
mod compact;
mod encoding;
mod error;
mod header;
mod signing_key;

pub use algorithm::{Algorithm, AlgorithmSet};
pub use compact::Compact;
pub use error::{JoseError, KeyError, SigningError};
pub use header::Header;
pub use signing_key::SigningKey;
/// How many keys a published set may have; a larger one is not taken.
pub const MAX_KEYS: usize = 100;
