use std::{
    array,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use governor::{nanos::Nanos, state::StateStore};
use portcullis_metadata::Clock;

/// More parts than workers, so that two rarely meet at a lock.
pub(super) const PARTS: usize = 16;
/// How often a full part is searched for those that have nothing used up.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

/// A keyed hash of whoever is counted. Two with the same one count together.
pub(super) type Key = u64;

/// What everybody has used up: for each key the moment at which that is nothing any more.
pub(super) struct Table {
    parts: [Mutex<Part>; PARTS],
    /// How many one part holds.
    room: usize,
    clock: Arc<dyn Clock>,
    /// Moments are counted from here.
    started: Duration,
}

#[derive(Default)]
struct Part {
    counts: HashMap<Key, Nanos, BuildHasherDefault<Hashed>>,
    /// The count of all who find no room.
    common: Option<Nanos>,
    next_search: Duration,
}

impl Table {
    pub(super) fn new(capacity: usize, clock: Arc<dyn Clock>) -> Self {
        let started = clock.monotonic();
        Self { parts: array::from_fn(|_| Mutex::default()), room: capacity / PARTS, clock, started }
    }

    /// Whether a part has room for one more, those that have nothing used up forgotten.
    fn makes_room(&self, part: &mut Part) -> bool {
        if part.counts.len() < self.room {
            return true;
        }
        let now = self.clock.monotonic().saturating_sub(self.started);
        if now >= part.next_search {
            part.next_search = now.saturating_add(SEARCH_EVERY);
            part.counts.retain(|_, free| Duration::from(*free) > now);
        }
        part.counts.len() < self.room
    }
}

impl StateStore for Table {
    type Key = Key;

    fn measure_and_replace<T, F, E>(&self, key: &Key, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut part = self.parts[part_of(*key)].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = part.counts.get_mut(key) {
            let (outcome, next) = measure(Some(*count))?;
            *count = next;
            return Ok(outcome);
        }
        if self.makes_room(&mut part) {
            let (outcome, next) = measure(None)?;
            part.counts.insert(*key, next);
            return Ok(outcome);
        }
        let (outcome, next) = measure(part.common)?;
        part.common = Some(next);
        Ok(outcome)
    }
}

/// The part that holds a key: its highest bits, since the map takes the low ones.
pub(super) fn part_of(key: Key) -> usize {
    (key >> (Key::BITS - PARTS.ilog2())) as usize
}

/// Keys are hashes already.
#[derive(Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        // The map looks at the highest bits, too, which all keys of a part share.
        self.0.rotate_left(PARTS.ilog2())
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
    use std::hash::BuildHasher as _;

    use portcullis_testkit::ManualClock;

    use super::*;

    fn held(table: &Table) -> usize {
        table.parts.iter().map(|part| part.lock().unwrap().counts.len()).sum()
    }

    /// Counts all of these keys, with something used up until the given moment.
    fn count(table: &Table, keys: impl Iterator<Item = Key>, until: Duration) {
        for key in keys {
            table.measure_and_replace(&(key << 60 | key), |_| Ok::<_, ()>(((), until.into()))).unwrap();
        }
    }

    /// J5: the table never holds more than its capacity; a full part is searched once a second, and forgets those that
    /// have nothing used up.
    #[test]
    fn the_table_is_bounded() {
        let clock = ManualClock::new();
        let table = Table::new(64, Arc::new(clock.clone()));
        count(&table, 0..1000, Duration::from_secs(10));
        assert_eq!(held(&table), 64);
        clock.advance(Duration::from_secs(9));
        count(&table, 1000..2000, Duration::from_millis(9_500));
        assert_eq!(held(&table), 64);
        assert!(table.parts[0].lock().unwrap().counts.contains_key(&0), "what is used up stays");
        clock.advance(Duration::from_secs(1));
        count(&table, 2000..2001, Duration::from_secs(20));
        let part = &table.parts[0].lock().unwrap().counts;
        assert!(part.len() == 1 && part.contains_key(&2000), "what is free makes room: {part:?}");
    }

    /// J5: newcomers to a full part make it search no more than once a second.
    #[test]
    fn a_full_part_is_not_searched_all_the_time() {
        let clock = ManualClock::new();
        let table = Table::new(PARTS, Arc::new(clock.clone()));
        let held = || table.parts[0].lock().unwrap().counts.keys().copied().collect::<Vec<_>>();
        count(&table, [16, 32].into_iter(), Duration::from_millis(500));
        assert_eq!(held(), [16]);
        clock.advance(Duration::from_millis(999));
        count(&table, [48].into_iter(), Duration::from_secs(9));
        assert_eq!(held(), [16]);
        clock.advance(Duration::from_millis(1));
        count(&table, [64].into_iter(), Duration::from_secs(9));
        assert_eq!(held(), [64]);
    }

    /// J5: a part is searched as soon as it is full, since it was not while it had room.
    #[test]
    fn a_part_with_room_is_not_searched() {
        let clock = ManualClock::new();
        let table = Table::new(2 * PARTS, Arc::new(clock.clone()));
        count(&table, [16].into_iter(), Duration::from_millis(100));
        count(&table, [32].into_iter(), Duration::from_secs(9));
        clock.advance(Duration::from_millis(500));
        count(&table, [48].into_iter(), Duration::from_secs(9));
        let part = &table.parts[0].lock().unwrap().counts;
        assert!(part.len() == 2 && !part.contains_key(&16), "{part:?}");
    }

    /// J5: the map is given all bits of a key, those first that keys of one part do not share, so that none of them meet.
    #[test]
    fn keys_of_a_part_are_spread_in_its_map() {
        let hash = BuildHasherDefault::<Hashed>::default();
        let hashed = [0, 1, 1 << 20, 1 << 52, 0xf << 60].map(|key: Key| hash.hash_one(key));
        assert_eq!(hashed, [0, 1 << 4, 1 << 24, 1 << 56, 0xf]);
    }

    /// J5: a refused request counts nothing, neither of somebody who is known nor of newcomers.
    #[test]
    fn refusals_count_nothing() {
        let table = Table::new(0, Arc::new(ManualClock::new()));
        assert_eq!(table.measure_and_replace(&1, |_| Err::<((), Nanos), _>("no")), Err("no"));
        let table = Table::new(64, Arc::new(ManualClock::new()));
        assert_eq!(table.measure_and_replace(&1, |_| Err::<((), Nanos), _>("no")), Err("no"));
        assert_eq!(held(&table), 0);
    }
}
