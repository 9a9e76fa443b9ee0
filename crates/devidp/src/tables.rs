use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use portcullis_metadata::Clock;

/// A table of at most `capacity` values. Each value expires `lifetime` after it was inserted or
/// last renewed.
///
/// The oldest value is the one that was inserted or renewed first. Each method to insert decides
/// differently about a full table: [`insert`](Self::insert) evicts the oldest value,
/// [`insert_new`](Self::insert_new) evicts none, and the caller of [`try_insert`](Self::try_insert)
/// chooses.
pub(crate) struct Table<V> {
    rows: Mutex<Rows<V>>,
    capacity: usize,
    lifetime: Duration,
    clock: Arc<dyn Clock>,
}

struct Rows<V> {
    by_key: HashMap<Box<str>, Row<V>>,
    /// The number of values that were ever inserted.
    inserted: u64,
}

struct Row<V> {
    value: V,
    /// The monotonic time at which it was inserted or last renewed.
    touched: Duration,
    /// The order of insertion, which decides between values of the same time.
    order: u64,
}

/// The capacity of tables whose oldest value is evicted first: of codes, consent pages, device
/// authorizations, opaque access tokens, and sessions with refresh tokens.
pub(crate) const EVICTING_CAPACITY: usize = 1000;
/// The capacity of tables whose values are never evicted: of revoked tokens, withdrawn sessions,
/// and used assertions and proofs.
pub(crate) const LASTING_CAPACITY: usize = 10_000;

/// The table is full and no value can be evicted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableFull;

/// What to do with a value after [`Table::update`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowAction {
    /// Keep the value. Its expiry does not change.
    Keep,
    /// Keep the value for another lifetime from now.
    Renew,
    /// Remove the value.
    Remove,
}

impl<V> Table<V> {
    /// Creates an empty table.
    pub(crate) fn new(capacity: usize, lifetime: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            rows: Mutex::new(Rows {
                by_key: HashMap::new(),
                inserted: 0,
            }),
            capacity,
            lifetime,
            clock,
        }
    }

    /// Inserts a value, or replaces the one with this key. If the table is full, expired values are
    /// removed first, then the oldest value.
    pub(crate) fn insert(&self, key: &str, value: V) {
        // Every value is evictable, so this never fails.
        let _ = self.try_insert(key, value, |_| true);
    }

    /// Inserts a value, or replaces the one with this key. If the table is full, expired values are
    /// removed first, then the oldest value that is evictable. Fails when no value is evictable.
    pub(crate) fn try_insert(
        &self,
        key: &str,
        value: V,
        is_evictable: impl Fn(&V) -> bool,
    ) -> Result<(), TableFull> {
        self.insert_locked(&mut self.rows.lock(), key, value, is_evictable)
    }

    /// Inserts a value if the key has none, and returns whether it was inserted. Does not evict
    /// other values. Fails when the table is full.
    pub(crate) fn insert_new(&self, key: &str, value: V) -> Result<bool, TableFull> {
        let mut rows = self.rows.lock();
        let now = self.clock.monotonic();
        if rows
            .by_key
            .get(key)
            .is_some_and(|row| !self.is_expired(row, now))
        {
            return Ok(false);
        }
        self.insert_locked(&mut rows, key, value, |_| false)
            .map(|()| true)
    }

    /// Returns whether the table has as many values as it can, not counting expired ones.
    pub(crate) fn is_full(&self) -> bool {
        let now = self.clock.monotonic();
        let by_key = &mut self.rows.lock().by_key;
        if by_key.len() >= self.capacity {
            by_key.retain(|_, row| !self.is_expired(row, now));
        }
        by_key.len() >= self.capacity
    }

    /// Removes all values that match a predicate.
    pub(crate) fn remove_if(&self, predicate: impl Fn(&V) -> bool) {
        self.rows
            .lock()
            .by_key
            .retain(|_, row| !predicate(&row.value));
    }

    /// Returns what `f` selects from the values that are not expired.
    pub(crate) fn collect<R>(&self, f: impl Fn(&V) -> Option<R>) -> Vec<R> {
        let now = self.clock.monotonic();
        self.rows
            .lock()
            .by_key
            .values()
            .filter(|row| !self.is_expired(row, now))
            .filter_map(|row| f(&row.value))
            .collect()
    }

    /// Returns whether there is a value that is not expired.
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.read(key, |_| ()).is_some()
    }

    /// Calls `f` with a value that is not expired. The table is locked during the call.
    pub(crate) fn read<R>(&self, key: &str, f: impl FnOnce(&V) -> R) -> Option<R> {
        self.update(key, |value| (f(value), RowAction::Keep))
    }

    /// Removes a value. Returns whether there was one that is not expired.
    pub(crate) fn remove(&self, key: &str) -> bool {
        self.update(key, |_| ((), RowAction::Remove)).is_some()
    }

    /// Calls `f` with a value that is not expired. The table is locked during the call, so updates
    /// are atomic.
    pub(crate) fn update<R>(
        &self,
        key: &str,
        f: impl FnOnce(&mut V) -> (R, RowAction),
    ) -> Option<R> {
        let now = self.clock.monotonic();
        let by_key = &mut self.rows.lock().by_key;
        let row = by_key.get_mut(key)?;
        if self.is_expired(row, now) {
            by_key.remove(key);
            return None;
        }
        let (result, action) = f(&mut row.value);
        match action {
            RowAction::Keep => {}
            RowAction::Renew => row.touched = now,
            RowAction::Remove => {
                by_key.remove(key);
            }
        }
        Some(result)
    }

    /// As [`try_insert`](Self::try_insert), with the table locked by the caller.
    fn insert_locked(
        &self,
        rows: &mut Rows<V>,
        key: &str,
        value: V,
        is_evictable: impl Fn(&V) -> bool,
    ) -> Result<(), TableFull> {
        let now = self.clock.monotonic();
        let Rows { by_key, inserted } = rows;
        // A value that is replaced needs no further capacity.
        let is_full = |by_key: &HashMap<Box<str>, Row<V>>| {
            by_key.len() >= self.capacity && !by_key.contains_key(key)
        };
        if is_full(by_key) {
            by_key.retain(|_, row| !self.is_expired(row, now));
        }
        if is_full(by_key) {
            let candidates = by_key.iter().filter(|(_, row)| is_evictable(&row.value));
            let oldest = candidates
                .min_by_key(|(_, row)| (row.touched, row.order))
                .map(|(key, _)| key.clone());
            by_key.remove(&oldest.ok_or(TableFull)?);
        }
        *inserted += 1;
        by_key.insert(
            key.into(),
            Row {
                value,
                touched: now,
                order: *inserted,
            },
        );
        Ok(())
    }

    fn is_expired(&self, row: &Row<V>, now: Duration) -> bool {
        now.saturating_sub(row.touched) >= self.lifetime
    }
}

impl<V> fmt::Debug for Table<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("rows", &self.rows.lock().by_key.len())
            .field("capacity", &self.capacity)
            .finish()
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
        table.update(key, |value| (*value, RowAction::Keep))
    }

    #[test]
    fn values_expire() {
        let (table, clock) = table(2);
        table.insert("a", 1);
        clock.advance(MINUTE - Duration::from_millis(1));
        assert_eq!(value(&table, "a"), Some(1));
        clock.advance(Duration::from_millis(1));
        assert_eq!(value(&table, "a"), None);
    }

    #[test]
    fn renewed_values_stay() {
        let (table, clock) = table(2);
        table.insert("a", 1);
        clock.advance(MINUTE / 2);
        table.update("a", |_| ((), RowAction::Renew));
        clock.advance(MINUTE / 2);
        assert_eq!(value(&table, "a"), Some(1));
    }

    #[test]
    fn values_can_be_removed() {
        let (table, _) = table(2);
        table.insert("a", 1);
        assert_eq!(
            table.update("a", |value| (*value, RowAction::Remove)),
            Some(1)
        );
        assert_eq!(value(&table, "a"), None);
    }

    #[test]
    fn a_full_table_evicts_the_oldest_evictable_value() {
        let (table, _) = table(3);
        for (key, number) in [("a", 1), ("b", 2), ("c", 3)] {
            table.insert(key, number);
        }
        assert_eq!(table.try_insert("d", 4, |_| false), Err(TableFull));
        table.try_insert("d", 4, |value| *value != 1).unwrap();
        assert_eq!(
            ["a", "b", "c", "d"].map(|key| value(&table, key)),
            [Some(1), None, Some(3), Some(4)]
        );
    }

    #[test]
    fn a_replaced_value_evicts_no_other() {
        let (table, _) = table(2);
        table.insert("a", 1);
        table.insert("b", 2);
        table.insert("b", 3);
        assert_eq!(table.try_insert("a", 4, |_| false), Ok(()));
        assert_eq!(["a", "b"].map(|key| value(&table, key)), [Some(4), Some(3)]);
    }

    #[test]
    fn a_key_is_inserted_once_until_it_expires() {
        let (table, clock) = table(1);
        assert_eq!(table.insert_new("a", 1), Ok(true));
        assert_eq!(table.insert_new("a", 2), Ok(false));
        assert_eq!(table.insert_new("b", 3), Err(TableFull));
        assert!(table.is_full());
        assert_eq!(value(&table, "a"), Some(1));
        clock.advance(MINUTE);
        assert!(!table.is_full());
        assert_eq!(table.insert_new("a", 4), Ok(true));
        table.remove_if(|value| *value == 4);
        assert_eq!(value(&table, "a"), None);
    }

    #[test]
    fn a_full_table_removes_expired_values_first() {
        let (table, clock) = table(1);
        table.insert("a", 1);
        clock.advance(MINUTE);
        table.insert("b", 2);
        assert_eq!(value(&table, "b"), Some(2));
    }
}
