use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portcullis_metadata::Clock;

/// A table of at most `capacity` values, each of which is forgotten `lifetime` after it was put in or last kept alive.
///
/// What happens when it is full is told to [`Table::insert`].
pub(crate) struct Table<V> {
    rows: Mutex<Rows<V>>,
    capacity: usize,
    lifetime: Duration,
    clock: Arc<dyn Clock>,
}

struct Rows<V> {
    by_key: HashMap<Box<str>, Row<V>>,
    inserted: u64,
}

struct Row<V> {
    value: V,
    touched: Duration,
    order: u64,
}

/// The table has no room, and nothing in it may be put out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Whether a value goes on living after it was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// As long as it would have anyway.
    AsItWas,
    /// For another lifetime from now.
    Renewed,
    /// Not at all.
    Removed,
}

impl<V> Table<V> {
    pub(crate) fn new(capacity: usize, lifetime: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { rows: Mutex::new(Rows { by_key: HashMap::new(), inserted: 0 }), capacity, lifetime, clock }
    }

    /// Puts a value in. A full table first forgets what has expired, then the oldest value that `may_go`
    /// lets go.
    pub(crate) fn insert(&self, key: &str, value: V, may_go: impl Fn(&V) -> bool) -> Result<(), Full> {
        self.put(&mut self.rows(), key, value, may_go)
    }

    /// Puts a value in only where none lives under this key, and says whether it did. Nothing is put out for it.
    pub(crate) fn insert_new(&self, key: &str, value: V) -> Result<bool, Full> {
        let mut rows = self.rows();
        let now = self.clock.monotonic();
        if rows.by_key.get(key).is_some_and(|row| !self.expired(row, now)) {
            return Ok(false);
        }
        self.put(&mut rows, key, value, |_| false).map(|()| true)
    }

    /// Forgets all values that are like this.
    pub(crate) fn forget(&self, is_like_this: impl Fn(&V) -> bool) {
        self.rows().by_key.retain(|_, row| !is_like_this(&row.value));
    }

    /// Lets `look` at a living value and change it, with the table locked, so that two callers never see
    /// the same state of it.
    pub(crate) fn look_up<R>(&self, key: &str, look: impl FnOnce(&mut V) -> (R, Keep)) -> Option<R> {
        let now = self.clock.monotonic();
        let by_key = &mut self.rows().by_key;
        let row = by_key.get_mut(key)?;
        if self.expired(row, now) {
            by_key.remove(key);
            return None;
        }
        let (answer, keep) = look(&mut row.value);
        match keep {
            Keep::AsItWas => {}
            Keep::Renewed => row.touched = now,
            Keep::Removed => {
                by_key.remove(key);
            }
        }
        Some(answer)
    }

    fn put(&self, rows: &mut Rows<V>, key: &str, value: V, may_go: impl Fn(&V) -> bool) -> Result<(), Full> {
        let now = self.clock.monotonic();
        let Rows { by_key, inserted } = rows;
        if by_key.len() >= self.capacity {
            by_key.retain(|_, row| !self.expired(row, now));
        }
        if by_key.len() >= self.capacity {
            let candidates = by_key.iter().filter(|(_, row)| may_go(&row.value));
            let oldest = candidates.min_by_key(|(_, row)| (row.touched, row.order)).map(|(key, _)| key.clone());
            by_key.remove(&oldest.ok_or(Full)?);
        }
        *inserted += 1;
        by_key.insert(key.into(), Row { value, touched: now, order: *inserted });
        Ok(())
    }

    fn expired(&self, row: &Row<V>, now: Duration) -> bool {
        now.saturating_sub(row.touched) >= self.lifetime
    }

    fn rows(&self) -> MutexGuard<'_, Rows<V>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> fmt::Debug for Table<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("rows", &self.rows().by_key.len()).field("capacity", &self.capacity).finish()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::ManualClock;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn table(capacity: usize) -> (Table<u32>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new());
        (Table::new(capacity, MINUTE, clock.clone()), clock)
    }

    fn value(table: &Table<u32>, key: &str) -> Option<u32> {
        table.look_up(key, |value| (*value, Keep::AsItWas))
    }

    #[test]
    fn a_value_is_forgotten_after_its_lifetime() {
        let (table, clock) = table(2);
        table.insert("a", 1, |_| false).unwrap();
        clock.advance(MINUTE - Duration::from_millis(1));
        assert_eq!(value(&table, "a"), Some(1));
        clock.advance(Duration::from_millis(1));
        assert_eq!(value(&table, "a"), None);
    }

    #[test]
    fn a_renewed_value_lives_on() {
        let (table, clock) = table(2);
        table.insert("a", 1, |_| false).unwrap();
        clock.advance(MINUTE / 2);
        table.look_up("a", |_| ((), Keep::Renewed));
        clock.advance(MINUTE / 2);
        assert_eq!(value(&table, "a"), Some(1));
    }

    #[test]
    fn a_removed_value_is_gone() {
        let (table, _) = table(2);
        table.insert("a", 1, |_| false).unwrap();
        assert_eq!(table.look_up("a", |value| (*value, Keep::Removed)), Some(1));
        assert_eq!(value(&table, "a"), None);
    }

    #[test]
    fn a_full_table_lets_the_oldest_go_that_may() {
        let (table, _) = table(3);
        for (key, number) in [("a", 1), ("b", 2), ("c", 3)] {
            table.insert(key, number, |_| false).unwrap();
        }
        assert_eq!(table.insert("d", 4, |_| false), Err(Full));
        table.insert("d", 4, |value| *value != 1).unwrap();
        assert_eq!(["a", "b", "c", "d"].map(|key| value(&table, key)), [Some(1), None, Some(3), Some(4)]);
    }

    #[test]
    fn a_value_is_put_in_once_while_it_lives() {
        let (table, clock) = table(1);
        assert_eq!(table.insert_new("a", 1), Ok(true));
        assert_eq!(table.insert_new("a", 2), Ok(false));
        assert_eq!(table.insert_new("b", 3), Err(Full));
        assert_eq!(value(&table, "a"), Some(1));
        clock.advance(MINUTE);
        assert_eq!(table.insert_new("a", 4), Ok(true));
        table.forget(|value| *value == 4);
        assert_eq!(value(&table, "a"), None);
    }

    #[test]
    fn a_full_table_forgets_the_expired_first() {
        let (table, clock) = table(1);
        table.insert("a", 1, |_| false).unwrap();
        clock.advance(MINUTE);
        table.insert("b", 2, |_| false).unwrap();
        assert_eq!(value(&table, "b"), Some(2));
    }
}
