//! [`Table`]: the bounded table of rate counters.

use std::{
    array,
    collections::HashMap,
    hash::BuildHasherDefault,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use governor::{nanos::Nanos, state::StateStore};
use portcullis_metadata::Clock;

use super::key::{Key, PassThroughHasher, SHARDS, shard_of};

/// How often idle counters of a full shard are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(1);

/// The counters: for each key, the time from which its full rate is available again.
pub(super) struct Table {
    shards: [Mutex<Shard>; SHARDS],
    /// The number of counters of one shard.
    shard_capacity: usize,
    clock: Arc<dyn Clock>,
    /// Times in the table are relative to this one.
    started: Duration,
}

/// A part of the table with a lock of its own.
#[derive(Default)]
struct Shard {
    counts: HashMap<Key, Nanos, BuildHasherDefault<PassThroughHasher>>,
    /// The counter of all keys that do not fit.
    overflow: Option<Nanos>,
    /// The time from which idle counters may be removed again.
    next_cleanup: Duration,
    /// The uses since they were last taken; `None` before [`Table::take_uses`] was called.
    uses: Option<HashMap<Key, u32, BuildHasherDefault<PassThroughHasher>>>,
}

impl Shard {
    /// Counts a use for other processes, if they count together with this one.
    fn count_use(&mut self, key: Key) {
        if let Some(uses) = &mut self.uses {
            let count = uses.entry(key).or_default();
            *count = count.saturating_add(1);
        }
    }
}

impl Table {
    /// Creates a table of at most `capacity` counters, rounded down to a multiple of the number of shards.
    pub(super) fn new(capacity: usize, clock: Arc<dyn Clock>) -> Self {
        let started = clock.monotonic();
        Self { shards: array::from_fn(|_| Mutex::default()), shard_capacity: capacity / SHARDS, clock, started }
    }

    /// Returns the uses of all keys with a counter since the last call. Uses are counted from the first call on.
    pub(super) fn take_uses(&self) -> Vec<(Key, u32)> {
        self.shards.iter().flat_map(|shard| mem::take(lock(shard).uses.get_or_insert_default())).collect()
    }

    /// Adds uses of other processes. Each delays the full rate by `interval`, up to `longest` from now.
    pub(super) fn add_uses(&self, uses: impl IntoIterator<Item = (Key, u32)>, interval: Duration, longest: Duration) {
        let now = self.clock.monotonic().saturating_sub(self.started);
        let latest = now.saturating_add(longest);
        for (key, count) in uses {
            let mut shard = lock(&self.shards[shard_of(key)]);
            let known = shard.counts.get(&key).copied().map_or(now, Duration::from);
            if known > now || self.ensure_capacity(&mut shard) {
                let next = known.max(now).saturating_add(interval.saturating_mul(count));
                // A counter never moves back.
                shard.counts.insert(key, next.min(latest).max(known).into());
            }
        }
    }

    /// Returns whether a shard can take one more counter. If it is full, idle counters are removed, once a second.
    fn ensure_capacity(&self, shard: &mut Shard) -> bool {
        if shard.counts.len() < self.shard_capacity {
            return true;
        }
        let now = self.clock.monotonic().saturating_sub(self.started);
        if now >= shard.next_cleanup {
            shard.next_cleanup = now.saturating_add(CLEANUP_INTERVAL);
            shard.counts.retain(|_, free| Duration::from(*free) > now);
        }
        shard.counts.len() < self.shard_capacity
    }
}

impl StateStore for Table {
    type Key = Key;

    fn measure_and_replace<T, F, E>(&self, key: &Key, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut shard = lock(&self.shards[shard_of(*key)]);
        if let Some(count) = shard.counts.get_mut(key) {
            let (result, next) = measure(Some(*count))?;
            *count = next;
            shard.count_use(*key);
            return Ok(result);
        }
        if self.ensure_capacity(&mut shard) {
            let (result, next) = measure(None)?;
            shard.counts.insert(*key, next);
            shard.count_use(*key);
            return Ok(result);
        }
        let (result, next) = measure(shard.overflow)?;
        shard.overflow = Some(next);
        Ok(result)
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A table that its limiter keeps, too.
pub(super) struct SharedTable(pub(super) Arc<Table>);

impl StateStore for SharedTable {
    type Key = Key;

    fn measure_and_replace<T, F, E>(&self, key: &Key, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, measure)
    }
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::ManualClock;

    use super::*;

    fn held(table: &Table) -> usize {
        table.shards.iter().map(|shard| shard.lock().unwrap().counts.len()).sum()
    }

    /// Sets the counters of these keys to be idle from the given time on.
    fn count(table: &Table, keys: impl Iterator<Item = Key>, until: Duration) {
        for key in keys {
            table.measure_and_replace(&(key << 60 | key), |_| Ok::<_, ()>(((), until.into()))).unwrap();
        }
    }

    /// J5: the table never exceeds its capacity. Idle counters of a full shard are removed once a second.
    #[test]
    fn the_table_is_bounded() {
        let clock = ManualClock::new();
        let table = Table::new(64, Arc::new(clock.clone()));
        count(&table, 0..1000, Duration::from_secs(10));
        assert_eq!(held(&table), 64);
        clock.advance(Duration::from_secs(9));
        count(&table, 1000..2000, Duration::from_millis(9_500));
        assert_eq!(held(&table), 64);
        assert!(table.shards[0].lock().unwrap().counts.contains_key(&0), "a counter that is not idle stays");
        clock.advance(Duration::from_secs(1));
        count(&table, 2000..2001, Duration::from_secs(20));
        let shard = &table.shards[0].lock().unwrap().counts;
        assert_eq!(shard.len(), 1, "idle counters are removed: {shard:?}");
        assert!(shard.contains_key(&2000), "idle counters are removed: {shard:?}");
    }

    /// J5: new keys clean up a full shard at most once a second.
    #[test]
    fn a_full_shard_is_cleaned_up_once_a_second() {
        let clock = ManualClock::new();
        let table = Table::new(SHARDS, Arc::new(clock.clone()));
        let held = || table.shards[0].lock().unwrap().counts.keys().copied().collect::<Vec<_>>();
        count(&table, [16, 32].into_iter(), Duration::from_millis(500));
        assert_eq!(held(), [16]);
        clock.advance(Duration::from_millis(999));
        count(&table, [48].into_iter(), Duration::from_secs(9));
        assert_eq!(held(), [16]);
        clock.advance(Duration::from_millis(1));
        count(&table, [64].into_iter(), Duration::from_secs(9));
        assert_eq!(held(), [64]);
    }

    /// J5: a shard is cleaned up only when it is full.
    #[test]
    fn a_shard_with_capacity_is_not_cleaned_up() {
        let clock = ManualClock::new();
        let table = Table::new(2 * SHARDS, Arc::new(clock.clone()));
        count(&table, [16].into_iter(), Duration::from_millis(100));
        count(&table, [32].into_iter(), Duration::from_secs(9));
        clock.advance(Duration::from_millis(500));
        count(&table, [48].into_iter(), Duration::from_secs(9));
        let shard = &table.shards[0].lock().unwrap().counts;
        assert_eq!(shard.len(), 2, "{shard:?}");
        assert!(!shard.contains_key(&16), "{shard:?}");
    }

    /// E13: uses of other processes add counters within the capacity.
    #[test]
    fn uses_of_others_stay_within_the_capacity() {
        let table = Table::new(64, Arc::new(ManualClock::new()));
        table.add_uses((0..1000).map(|key| (key << 60 | key, 1)), Duration::from_secs(1), Duration::from_secs(9));
        assert_eq!(held(&table), 64);
    }

    /// J5: a rejected request changes no counter and adds none.
    #[test]
    fn rejected_requests_are_not_counted() {
        let table = Table::new(0, Arc::new(ManualClock::new()));
        assert_eq!(table.measure_and_replace(&1, |_| Err::<((), Nanos), _>("no")), Err("no"));
        let table = Table::new(64, Arc::new(ManualClock::new()));
        assert_eq!(table.measure_and_replace(&1, |_| Err::<((), Nanos), _>("no")), Err("no"));
        assert_eq!(held(&table), 0);
    }
}
