//! [`LimitHasher`]: the keyed hash by which requests are counted for limits.

use std::{
    fmt,
    hash::{BuildHasher as _, Hash, Hasher as _, RandomState},
    sync::OnceLock,
};

use siphasher::sip::SipHasher13;

/// The keyed hash of addresses and principals by which requests are counted for limits: SipHash-1-3
/// with 64 bits.
///
/// A client that does not know the key cannot cause collisions. `Debug` does not print the key.
/// Each process has a random key, unless [`set_key`](Self::set_key) was called first. Replicas that
/// count together need the same key.
#[derive(Clone, Copy)]
pub struct LimitHasher([u64; 2]);

/// The hasher of this process. A table whose keys were hashed with another key would be useless, so
/// it is set once.
static OF_PROCESS: OnceLock<LimitHasher> = OnceLock::new();

impl LimitHasher {
    /// Returns the hash of this process. The first call draws a random key if none was set.
    pub fn of_process() -> Self {
        *OF_PROCESS.get_or_init(|| {
            let random = RandomState::new();
            Self([0, 1].map(|half: u64| random.hash_one(half)))
        })
    }

    /// Sets the key of this process. Returns whether it is in use: a key that was set or drawn
    /// before remains.
    pub fn set_key(key: &[u8; 16]) -> bool {
        let keys = u128::from_le_bytes(*key);
        let keys = [keys as u64, (keys >> 64) as u64];
        OF_PROCESS.get_or_init(|| Self(keys)).0 == keys
    }

    /// Returns the hash of a value. Equal values of one type have equal hashes in all processes
    /// with the same key.
    pub fn hash(self, value: impl Hash) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.0[0], self.0[1]);
        value.hash(&mut hasher);
        hasher.finish()
    }
}

impl fmt::Debug for LimitHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitHasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E13: hashes depend on the key, and a key in use remains.
    #[test]
    fn a_key_in_use_remains() {
        assert_ne!(LimitHasher([1, 2]).hash("a"), LimitHasher([1, 3]).hash("a"));
        let hash = LimitHasher::of_process().hash("a");
        assert!(!LimitHasher::set_key(b"another key, set"));
        assert_eq!(LimitHasher::of_process().hash("a"), hash);
        assert!(!format!("{:?}", LimitHasher([77, 2])).contains("77"));
    }
}
