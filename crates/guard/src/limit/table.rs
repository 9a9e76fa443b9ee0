use std::{array, collections::HashMap, hash::BuildHasherDefault, mem, sync::Arc, time::Duration};

use governor::{nanos::Nanos, state::StateStore};
use parking_lot::Mutex;
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
    /// Counts a use for other processes, if they count together with this one. At most `capacity`
    /// keys are kept.
    fn count_use(&mut self, key: Key, capacity: usize) {
        if let Some(uses) = &mut self.uses
            && (uses.len() < capacity || uses.contains_key(&key))
        {
            let count = uses.entry(key).or_default();
            *count = count.saturating_add(1);
        }
    }
}

impl Table {
    /// Creates a table of at most `capacity` counters, rounded down to a multiple of the number of
    /// shards.
    pub(super) fn new(capacity: usize, clock: Arc<dyn Clock>) -> Self {
        let started = clock.monotonic();
        Self {
            shards: array::from_fn(|_| Mutex::default()),
            shard_capacity: capacity / SHARDS,
            clock,
            started,
        }
    }

    /// Returns the uses of keys with a counter since the last call, of at most as many keys as
    /// there can be counters. Uses are counted from the first call on.
    pub(super) fn take_uses(&self) -> Vec<(Key, u32)> {
        self.shards
            .iter()
            .flat_map(|shard| mem::take(shard.lock().uses.get_or_insert_default()))
            .collect()
    }

    /// Adds uses of other processes. Each delays the full rate by `interval`, up to `longest` from
    /// now.
    pub(super) fn add_uses(
        &self,
        uses: impl IntoIterator<Item = (Key, u32)>,
        interval: Duration,
        longest: Duration,
    ) {
        let now = self.clock.monotonic().saturating_sub(self.started);
        let latest = now.saturating_add(longest);
        for (key, count) in uses {
            let mut shard = self.shards[shard_of(key)].lock();
            let known = shard.counts.get(&key).copied().map(Duration::from);
            if known.is_some() || self.ensure_capacity(&mut shard) {
                let known = known.unwrap_or(now).max(now);
                let next = known.saturating_add(interval.saturating_mul(count));
                // A counter never moves back.
                shard.counts.insert(key, next.min(latest).max(known).into());
            }
        }
    }

    /// Returns whether a shard can take one more counter. If it is full, idle counters are removed,
    /// once a second.
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
        let mut shard = self.shards[shard_of(*key)].lock();
        if let Some(count) = shard.counts.get_mut(key) {
            let (result, next) = measure(Some(*count))?;
            *count = next;
            shard.count_use(*key, self.shard_capacity);
            return Ok(result);
        }
        if self.ensure_capacity(&mut shard) {
            let (result, next) = measure(None)?;
            shard.counts.insert(*key, next);
            shard.count_use(*key, self.shard_capacity);
            return Ok(result);
        }
        let (result, next) = measure(shard.overflow)?;
        shard.overflow = Some(next);
        Ok(result)
    }
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

    const CAPACITY: usize = 4 * SHARDS;

    fn table(capacity: usize) -> (ManualClock, Table) {
        let clock = ManualClock::new();
        (clock.clone(), Table::new(capacity, Arc::new(clock)))
    }

    /// Returns the number of counters.
    fn len(table: &Table) -> usize {
        table
            .shards
            .iter()
            .map(|shard| shard.lock().counts.len())
            .sum()
    }

    /// Returns the keys of the first shard, sorted.
    fn first_shard(table: &Table) -> Vec<Key> {
        let mut keys: Vec<Key> = table.shards[0].lock().counts.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// Returns a key with this number, in the shard that its last digit selects.
    fn spread(number: u64) -> Key {
        number << (Key::BITS - SHARDS.ilog2()) | number
    }

    /// Uses each key, so that its counter is idle from the given time on.
    fn count(table: &Table, keys: impl IntoIterator<Item = Key>, idle_from: Duration) {
        for key in keys {
            table
                .measure_and_replace(&key, |_| Ok::<_, ()>(((), idle_from.into())))
                .unwrap();
        }
    }

    /// J5: the table never exceeds its capacity, and counters that are not idle stay.
    #[test]
    fn the_table_is_bounded() {
        let (clock, table) = table(CAPACITY);
        count(&table, (0..1000).map(spread), Duration::from_secs(10));
        assert_eq!(len(&table), CAPACITY);
        clock.advance(Duration::from_secs(9));
        count(
            &table,
            (1000..2000).map(spread),
            Duration::from_millis(9_500),
        );
        assert_eq!(len(&table), CAPACITY);
        assert!(first_shard(&table).contains(&spread(0)));
    }

    /// J5: a new key removes the idle counters of its full shard.
    #[test]
    fn idle_counters_of_a_full_shard_are_removed() {
        let (clock, table) = table(CAPACITY);
        count(&table, (0..1000).map(spread), Duration::from_secs(10));
        clock.advance(Duration::from_secs(10));
        count(&table, [spread(2000)], Duration::from_secs(20));
        assert_eq!(first_shard(&table), [spread(2000)]);
    }

    /// J5: new keys clean up a full shard at most once a second.
    #[test]
    fn a_full_shard_is_cleaned_up_once_a_second() {
        let (clock, table) = table(SHARDS);
        let [first, second, third, fourth] = [1, 2, 3, 4];
        count(&table, [first, second], Duration::from_millis(500));
        assert_eq!(first_shard(&table), [first]);
        clock.advance(Duration::from_millis(999));
        count(&table, [third], Duration::from_secs(9));
        assert_eq!(first_shard(&table), [first]);
        clock.advance(Duration::from_millis(1));
        count(&table, [fourth], Duration::from_secs(9));
        assert_eq!(first_shard(&table), [fourth]);
    }

    /// J5: a shard is cleaned up only when it is full.
    #[test]
    fn a_shard_with_capacity_is_not_cleaned_up() {
        let (clock, table) = table(2 * SHARDS);
        let [idle, busy, late] = [1, 2, 3];
        count(&table, [idle], Duration::from_millis(100));
        count(&table, [busy], Duration::from_secs(9));
        clock.advance(Duration::from_millis(500));
        assert_eq!(first_shard(&table), [idle, busy]);
        count(&table, [late], Duration::from_secs(9));
        assert_eq!(first_shard(&table), [busy, late]);
    }

    /// E13: uses of other processes add counters within the capacity.
    #[test]
    fn uses_of_others_stay_within_the_capacity() {
        let (_, table) = table(CAPACITY);
        table.add_uses(
            (0..1000).map(|number| (spread(number), 1)),
            Duration::from_secs(1),
            Duration::from_secs(9),
        );
        assert_eq!(len(&table), CAPACITY);
    }

    /// E13: uses of other processes delay an idle counter, also in a full shard.
    #[test]
    fn uses_of_others_delay_an_idle_counter() {
        let (clock, table) = table(SHARDS);
        let [first, second] = [1, 2];
        count(&table, [first, second], Duration::from_millis(500));
        clock.advance(Duration::from_millis(600));
        table.add_uses([(first, 3)], Duration::from_secs(1), Duration::from_secs(9));
        let found = table
            .measure_and_replace(&first, |found| Ok::<_, ()>((found, Duration::ZERO.into())))
            .unwrap();
        assert_eq!(found.map(Duration::from), Some(Duration::from_millis(3600)));
    }

    /// E13: uses that are not taken stay within the capacity, although counters are replaced.
    #[test]
    fn uses_that_are_not_taken_are_bounded() {
        let (clock, table) = table(CAPACITY);
        table.take_uses();
        for second in 1..=5 {
            clock.advance(Duration::from_secs(1));
            count(
                &table,
                (second * 1000..(second + 1) * 1000).map(spread),
                Duration::from_secs(second),
            );
        }
        assert_eq!(table.take_uses().len(), CAPACITY);
    }

    /// J5: a rejected request changes no counter and adds none.
    #[test]
    fn rejected_requests_are_not_counted() {
        for capacity in [0, CAPACITY] {
            let (_, table) = table(capacity);
            assert_eq!(
                table.measure_and_replace(&1, |_| Err::<((), Nanos), _>("rejected")),
                Err("rejected")
            );
            assert_eq!(len(&table), 0, "capacity {capacity}");
        }
    }
}
