//! [`Cache`]: verified tokens, by keyed hash.

use std::{collections::HashMap, mem, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use portcullis_metadata::{Now, UnixTime};

use crate::{
    token_hash::{TokenHash, TokenHashKey},
    verified_token::VerifiedToken,
};

/// The maximum time for which a token verified by signature is cached.
pub(crate) const MAX_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// The maximum number of shards. Each has a lock, and there are more shards than workers.
const MAX_SHARDS: usize = 64;

/// Recently verified tokens.
///
/// An entry is identified by a keyed hash of the token and the configuration generation; the token
/// itself is not stored. A lookup locks one shard for one table access and does not allocate.
///
/// The cache is bounded. In a full shard, a new entry replaces about the oldest one. Invalid
/// entries are removed when they are looked up, replaced, or [swept](Self::sweep).
pub(crate) struct Cache {
    hash_key: TokenHashKey,
    resource_generation: u64,
    shards: Box<[Mutex<Shard>]>,
    shard_capacity: usize,
}

/// The issuer and the key generation of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyState {
    /// The position of the issuer in the verifier's list.
    pub(crate) issuer: usize,
    /// The key generation, read before the verification started.
    pub(crate) generation: u64,
}

impl Cache {
    /// Creates a cache of at most `entries` tokens; 0 disables it.
    pub(crate) fn new(entries: usize, resource_generation: u64) -> Result<Self, getrandom::Error> {
        let shards = if entries == 0 {
            1
        } else {
            1 << entries.ilog2().min(MAX_SHARDS.ilog2())
        };
        Ok(Self {
            hash_key: TokenHashKey::generate()?,
            resource_generation,
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            shard_capacity: entries / shards,
        })
    }

    /// Returns the hash that identifies a token in this cache.
    pub(crate) fn hash(&self, token: impl AsRef<[u8]>) -> TokenHash {
        self.hash_key.hash(self.resource_generation, token.as_ref())
    }

    /// Returns a token that is still valid. `generations` returns the current key generation of an
    /// issuer.
    pub(crate) fn get(
        &self,
        hash: TokenHash,
        now: Now,
        generations: impl Fn(usize) -> Option<u64>,
    ) -> Option<VerifiedToken> {
        let mut shard = self.shard(hash);
        let position = *shard.index.get(&hash)?;
        let entry = shard.entries.get(position)?;
        if entry.is_valid(now, &generations) {
            return Some(entry.token.clone());
        }
        shard.remove(position);
        None
    }

    /// Inserts a verified token until it expires, but for at most `max_lifetime` and 5 min. A token
    /// whose issuer's keys have changed since `keys` is not inserted.
    pub(crate) fn insert(
        &self,
        hash: TokenHash,
        keys: KeyState,
        token: VerifiedToken,
        max_lifetime: Duration,
        now: Now,
        generations: impl Fn(usize) -> Option<u64>,
    ) {
        let entry = Entry {
            hash,
            keys,
            expires: token.principal().expires(),
            evict_at: now.monotonic.saturating_add(max_lifetime.min(MAX_LIFETIME)),
            token,
        };
        if self.shard_capacity == 0 || !entry.is_valid(now, &generations) {
            return;
        }
        // The replaced entry is dropped after the lock is released.
        let replaced = self.shard(hash).insert(entry, self.shard_capacity);
        drop(replaced);
    }

    /// Returns whether a token is in the cache, valid or not.
    pub(crate) fn contains(&self, hash: TokenHash) -> bool {
        self.shard(hash).index.contains_key(&hash)
    }

    pub(crate) fn remove(&self, hash: TokenHash) {
        let mut shard = self.shard(hash);
        if let Some(position) = shard.index.get(&hash).copied() {
            shard.remove(position);
        }
    }

    /// Removes all tokens that are no longer valid and returns their number.
    pub(crate) fn sweep(&self, now: Now, generations: impl Fn(usize) -> Option<u64>) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().sweep(now, &generations))
            .sum()
    }

    /// Returns the number of entries, valid or not.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().entries.len())
            .sum()
    }

    /// Locks the shard of a hash. The number of shards is a power of two.
    fn shard(&self, hash: TokenHash) -> MutexGuard<'_, Shard> {
        let shard = hash.0 as usize & (self.shards.len() - 1);
        self.shards[shard].lock()
    }
}

/// A cached token.
struct Entry {
    hash: TokenHash,
    keys: KeyState,
    /// The token's `exp`.
    expires: UnixTime,
    /// The monotonic time at which the entry is no longer used.
    evict_at: Duration,
    token: VerifiedToken,
}

impl Entry {
    /// Returns whether the token has not expired and its issuer's keys have not changed.
    fn is_valid(&self, now: Now, generations: &impl Fn(usize) -> Option<u64>) -> bool {
        now.unix < self.expires
            && now.monotonic < self.evict_at
            && generations(self.keys.issuer) == Some(self.keys.generation)
    }
}

/// Entries in a ring, approximately from the oldest to the newest, and an index of them.
#[derive(Default)]
struct Shard {
    index: HashMap<TokenHash, usize>,
    entries: Vec<Entry>,
    /// The position of the entry that is replaced next.
    next_victim: usize,
}

impl Shard {
    /// Inserts an entry in place of the one with the same hash or, if the shard is full, of the
    /// oldest one. Returns the replaced entry.
    fn insert(&mut self, entry: Entry, capacity: usize) -> Option<Entry> {
        let position = match self.index.get(&entry.hash) {
            Some(&position) => position,
            None if self.entries.len() < capacity => {
                self.index.insert(entry.hash, self.entries.len());
                self.entries.push(entry);
                return None;
            }
            None => self.take_victim(),
        };
        let hash = entry.hash;
        let replaced = mem::replace(self.entries.get_mut(position)?, entry);
        self.index.remove(&replaced.hash);
        self.index.insert(hash, position);
        Some(replaced)
    }

    /// Returns the position of the oldest entry. Renewed entries, and entries that replaced a
    /// removed one, are out of order.
    fn take_victim(&mut self) -> usize {
        let position = if self.next_victim < self.entries.len() {
            self.next_victim
        } else {
            0
        };
        self.next_victim = position + 1;
        position
    }

    fn remove(&mut self, position: usize) {
        let removed = self.entries.swap_remove(position);
        self.index.remove(&removed.hash);
        if let Some(moved) = self.entries.get(position) {
            self.index.insert(moved.hash, position);
        }
    }

    fn sweep(&mut self, now: Now, generations: &impl Fn(usize) -> Option<u64>) -> usize {
        let before = self.entries.len();
        if self
            .entries
            .iter()
            .all(|entry| entry.is_valid(now, generations))
        {
            return 0;
        }
        // The oldest entry moves to the start, so that the remaining entries keep their order.
        self.entries.rotate_left(self.next_victim.min(before));
        self.next_victim = 0;
        self.entries
            .retain(|entry| entry.is_valid(now, generations));
        self.index.clear();
        self.index.extend(
            self.entries
                .iter()
                .enumerate()
                .map(|(position, entry)| (entry.hash, position)),
        );
        before - self.entries.len()
    }
}

#[cfg(test)]
mod tests;
