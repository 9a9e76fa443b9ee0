//! [`Key`]: the keys of counters, and how they are distributed among shards and within a map.

use std::hash::Hasher;

/// The number of shards. Each has a lock, and there are more than workers.
pub(super) const SHARDS: usize = 16;

/// A keyed hash of the counted address or principal. Equal hashes share a counter.
pub(super) type Key = u64;

/// Returns the shard of a key: its highest bits.
pub(super) fn shard_of(key: Key) -> usize {
    (key >> (Key::BITS - SHARDS.ilog2())) as usize
}

/// A pass-through hasher, because keys are hashes.
#[derive(Default)]
pub(super) struct PassThroughHasher(u64);

impl Hasher for PassThroughHasher {
    fn finish(&self) -> u64 {
        // The map uses the lowest and the highest bits. The bits that all keys of a shard share
        // move to the middle.
        self.0.rotate_left(Key::BITS / 2)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, BuildHasherDefault};

    use super::*;

    /// J5: the bits that all keys of a shard share are neither among the lowest nor among the
    /// highest, which the map uses.
    #[test]
    fn keys_of_a_shard_are_spread_in_its_map() {
        let hash = BuildHasherDefault::<PassThroughHasher>::default();
        let hashed = [0, 1, 1 << 20, 1 << 52, 0xf << 60].map(|key: Key| hash.hash_one(key));
        assert_eq!(hashed, [0, 1 << 32, 1 << 52, 1 << 20, 0xf << 28]);
    }

    /// J5: keys are distributed among all shards by their highest bits.
    #[test]
    fn every_shard_has_keys() {
        for shard in 0..SHARDS {
            let first = (shard as Key) << (Key::BITS - SHARDS.ilog2());
            assert_eq!(shard_of(first), shard);
            assert_eq!(shard_of(first | 0xffff), shard);
        }
        assert_eq!(shard_of(Key::MAX), SHARDS - 1);
    }
}
