//! [`TokenHashKey`]: keyed hashes that identify tokens in tables.

use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use zeroize::Zeroizing;

/// A random key for hashes of tokens.
///
/// The hash is SipHash-1-3 with a 128-bit result. Neither the key nor a hash leaves the process, so
/// no one can search for two tokens with the same hash.
#[derive(Clone)]
pub(crate) struct TokenHashKey(Zeroizing<[u8; 16]>);

/// The keyed hash of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash(pub(crate) u128);

impl TokenHashKey {
    /// Creates a random key.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut key = Zeroizing::new([0; 16]);
        getrandom::fill(key.as_mut_slice())?;
        Ok(Self(key))
    }

    /// Hashes a token. The hash also depends on `generation`.
    pub(crate) fn hash(&self, generation: u64, token: &[u8]) -> TokenHash {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(&generation.to_le_bytes());
        hasher.write(token);
        TokenHash(hasher.finish128().as_u128())
    }
}
