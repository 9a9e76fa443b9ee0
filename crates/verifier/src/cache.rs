use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portcullis_metadata::UnixTime;
use siphasher::sip128::SipHasher13;
use zeroize::Zeroizing;

use crate::VerifiedToken;

/// How long a token that was verified by its signature counts at most, whatever its expiry.
pub(crate) const MAX_LIFE: Duration = Duration::from_secs(5 * 60);
/// More shards than workers, so that two rarely meet at a lock.
const MAX_SHARDS: usize = 64;
/// How many slots a shard has room for once it has any: growing from one costs more than that room.
const FIRST_ROOM: usize = 32;

/// Tokens that were verified a short while ago, by a keyed hash of the token.
///
/// The token itself is never stored. The key is drawn per cache and the hash covers the resource configuration's
/// generation, so that an entry counts for one resource in one configuration. A lookup locks one shard for the time
/// of a table probe and allocates nothing.
///
/// Bounded: in a full shard a new entry takes the place of about the oldest. Entries that no longer count go when they are
/// asked for, when it is their turn, or in a [`sweep`](Self::sweep).
pub(crate) struct Cache {
    key: Zeroizing<[u8; 16]>,
    resource_generation: u64,
    shards: Box<[Mutex<Shard>]>,
    shard_capacity: usize,
}

/// The keyed hash that stands for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u128);

/// Which state of which issuer's keys a verification began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyState {
    /// The issuer's place in the verifier's list.
    pub(crate) issuer: usize,
    /// The key generation, read before the verification.
    pub(crate) generation: u64,
}

/// The two readings of the clock that a lookup or an insertion is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) unix: UnixTime,
    pub(crate) monotonic: Duration,
}

impl Cache {
    /// A cache of at most `entries` entries; with 0 it keeps nothing.
    pub(crate) fn new(entries: usize, resource_generation: u64) -> Result<Self, getrandom::Error> {
        let mut key = Zeroizing::new([0; 16]);
        getrandom::fill(key.as_mut_slice())?;
        let shards = if entries == 0 { 1 } else { 1 << entries.ilog2().min(MAX_SHARDS.ilog2()) };
        Ok(Self {
            key,
            resource_generation,
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            shard_capacity: entries / shards,
        })
    }

    /// SipHash-1-3 with 128 bits of output: the key is drawn here and never leaves, and neither does any hash, so that
    /// nobody can look for two tokens that share one.
    pub(crate) fn fingerprint(&self, token: impl AsRef<[u8]>) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(&self.resource_generation.to_le_bytes());
        hasher.write(token.as_ref());
        Fingerprint(siphasher::sip128::Hasher128::finish128(&hasher).as_u128())
    }

    /// The entry of a token, while it counts. One that is expired, or whose issuer's keys have changed, is removed.
    pub(crate) fn get(
        &self,
        fingerprint: Fingerprint,
        now: Now,
        present: impl Fn(usize) -> Option<u64>,
    ) -> Option<VerifiedToken> {
        let mut shard = self.shard(fingerprint);
        let position = *shard.index.get(&fingerprint.0)?;
        let slot = shard.slots.get(position)?;
        if slot.counts(now, &present) {
            return Some(slot.token.clone());
        }
        shard.remove(position);
        None
    }

    /// Keeps a verified token until its expiry, for `longest` at most.
    pub(crate) fn insert(
        &self,
        fingerprint: Fingerprint,
        keys: KeyState,
        token: VerifiedToken,
        longest: Duration,
        now: Now,
        present: impl Fn(usize) -> Option<u64>,
    ) {
        let slot = Slot {
            fingerprint: fingerprint.0,
            keys,
            expires: token.principal().expires(),
            dies: now.monotonic.saturating_add(longest.min(MAX_LIFE)),
            token,
        };
        if self.shard_capacity == 0 || !slot.counts(now, &present) {
            return;
        }
        // What it takes the place of ends when the shard is no longer locked.
        let former = self.shard(fingerprint).put(slot, self.shard_capacity);
        drop(former);
    }

    /// Removes the entry of a token.
    pub(crate) fn remove(&self, fingerprint: Fingerprint) {
        let mut shard = self.shard(fingerprint);
        if let Some(position) = shard.index.get(&fingerprint.0).copied() {
            shard.remove(position);
        }
    }

    /// Removes every entry that no longer counts, and says how many those were.
    pub(crate) fn sweep(&self, now: Now, present: impl Fn(usize) -> Option<u64>) -> usize {
        self.shards.iter().map(|shard| lock(shard).sweep(now, &present)).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).slots.len()).sum()
    }

    fn shard(&self, fingerprint: Fingerprint) -> MutexGuard<'_, Shard> {
        // The table inside takes the low half, the shard the high one.
        let shard = (fingerprint.0 >> 64) as usize & (self.shards.len() - 1);
        lock(&self.shards[shard])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Slot {
    fingerprint: u128,
    keys: KeyState,
    expires: UnixTime,
    dies: Duration,
    token: VerifiedToken,
}

impl Slot {
    fn counts(&self, now: Now, present: &impl Fn(usize) -> Option<u64>) -> bool {
        now.unix < self.expires && now.monotonic < self.dies && present(self.keys.issuer) == Some(self.keys.generation)
    }
}

/// A table beside a list in which entries take each other's place in turn. What goes at about the same time came at about
/// the same time, and stands close together in memory: one that is picked at random costs several cache misses.
#[derive(Default)]
struct Shard {
    index: HashMap<u128, usize, BuildHasherDefault<LowHalf>>,
    slots: Vec<Slot>,
    /// The place of the entry that goes next.
    turn: usize,
}

impl Shard {
    /// Puts an entry into the place of the one that it renews or, where the shard is full, of the one whose turn it is to
    /// go. Gives back what was in its place.
    fn put(&mut self, slot: Slot, capacity: usize) -> Option<Slot> {
        let place = match self.index.get(&slot.fingerprint) {
            Some(&position) => position,
            None if self.slots.len() < capacity => {
                self.push(slot);
                return None;
            }
            None => self.first(),
        };
        let fingerprint = slot.fingerprint;
        let former = mem::replace(self.slots.get_mut(place)?, slot);
        self.index.remove(&former.fingerprint);
        self.index.insert(fingerprint, place);
        Some(former)
    }

    /// The place of the entry that goes next. From it on they stand in the order in which they came, but for one that was
    /// renewed or took the place of one that had ended.
    fn first(&mut self) -> usize {
        let place = if self.turn < self.slots.len() { self.turn } else { 0 };
        self.turn = place + 1;
        place
    }

    fn push(&mut self, slot: Slot) {
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(FIRST_ROOM);
            self.index.reserve(FIRST_ROOM);
        }
        self.index.insert(slot.fingerprint, self.slots.len());
        self.slots.push(slot);
    }

    fn remove(&mut self, position: usize) {
        let removed = self.slots.swap_remove(position);
        self.index.remove(&removed.fingerprint);
        if let Some(moved) = self.slots.get(position) {
            self.index.insert(moved.fingerprint, position);
        }
    }

    fn sweep(&mut self, now: Now, present: &impl Fn(usize) -> Option<u64>) -> usize {
        let before = self.slots.len();
        if self.slots.iter().all(|slot| slot.counts(now, present)) {
            return 0;
        }
        // Those that stay keep their order, and what comes next stands behind all of them.
        self.slots.rotate_left(self.turn.min(before));
        self.turn = 0;
        self.slots.retain(|slot| slot.counts(now, present));
        self.index.clear();
        self.index.extend(self.slots.iter().enumerate().map(|(position, slot)| (slot.fingerprint, position)));
        before - self.slots.len()
    }
}

/// The keys are keyed hashes already: their low half is as good as a hash of them.
#[derive(Default)]
struct LowHalf(u64);

impl Hasher for LowHalf {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

#[cfg(test)]
mod tests;
