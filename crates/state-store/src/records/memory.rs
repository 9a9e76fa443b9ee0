//! [`MemoryRecords`]: records that a restart loses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::ready,
    ops::Bound,
    sync::Arc,
};

use parking_lot::Mutex;
use portcullis_metadata::{Clock, UnixTime};

use super::{
    BoxFuture, Change, Condition, KeyedRecord, MAX_SWEPT, Outcome, RecordError, RecordStore,
    StoredRecord, Table, Write,
};

/// Records in memory, for tests and for servers without a state directory. No change is durable.
pub struct MemoryRecords {
    tables: Mutex<Tables>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Tables {
    records: BTreeMap<Table, BTreeMap<Box<[u8]>, StoredRecord>>,
    /// All records, by their expiry.
    expiries: BTreeSet<(UnixTime, Table, Box<[u8]>)>,
}

impl MemoryRecords {
    /// Returns a store without records.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            tables: Mutex::default(),
            clock,
        }
    }
}

impl RecordStore for MemoryRecords {
    fn get(
        &self,
        table: Table,
        key: &[u8],
    ) -> BoxFuture<'_, Result<Option<StoredRecord>, RecordError>> {
        let record = self
            .tables
            .lock()
            .get(table, key, self.clock.now())
            .cloned();
        Box::pin(ready(Ok(record)))
    }

    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Outcome, RecordError>> {
        let result = change
            .check_size()
            .map(|()| self.tables.lock().commit(change, self.clock.now()));
        Box::pin(ready(result))
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<KeyedRecord>, RecordError>> {
        let records = self
            .tables
            .lock()
            .scan(table, prefix, after, limit, self.clock.now());
        Box::pin(ready(Ok(records)))
    }

    fn count(&self, table: Table) -> BoxFuture<'_, Result<u64, RecordError>> {
        let count = self.tables.lock().count(table);
        Box::pin(ready(Ok(count)))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        self.tables.lock().sweep(self.clock.now());
        Box::pin(ready(Ok(())))
    }
}

impl Tables {
    fn get(&self, table: Table, key: &[u8], now: UnixTime) -> Option<&StoredRecord> {
        let record = self.records.get(&table)?.get(key)?;
        (record.expires > now).then_some(record)
    }

    fn count(&self, table: Table) -> u64 {
        self.records
            .get(&table)
            .map_or(0, |records| records.len() as u64)
    }

    fn commit(&mut self, change: Change, now: UnixTime) -> Outcome {
        for condition in &change.conditions {
            match condition {
                Condition::Value {
                    table,
                    key,
                    expected,
                } => {
                    let value = self.get(*table, key, now).map(|record| &record.value);
                    if value != expected.as_ref() {
                        return Outcome::Conflict;
                    }
                }
                Condition::Below { table, max } => {
                    if self.count(*table) >= *max {
                        return Outcome::Full;
                    }
                }
            }
        }
        for write in change.writes {
            match write {
                Write::Put { table, key, record } => {
                    self.remove(table, &key);
                    self.expiries.insert((record.expires, table, key.clone()));
                    self.records.entry(table).or_default().insert(key, record);
                }
                Write::Delete { table, key } => self.remove(table, &key),
            }
        }
        Outcome::Committed
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        let removed = self
            .records
            .get_mut(&table)
            .and_then(|records| records.remove_entry(key));
        if let Some((key, record)) = removed {
            self.expiries.remove(&(record.expires, table, key));
        }
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
        now: UnixTime,
    ) -> Vec<KeyedRecord> {
        let Some(records) = self.records.get(&table) else {
            return Vec::new();
        };
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        records
            .range::<[u8], _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter(|(_, record)| record.expires > now)
            .take(limit)
            .map(|(key, record)| (key.clone(), record.clone()))
            .collect()
    }

    fn sweep(&mut self, now: UnixTime) {
        for _ in 0..MAX_SWEPT {
            let is_expired = |(expires, ..): &(UnixTime, _, _)| *expires <= now;
            if !self.expiries.first().is_some_and(is_expired) {
                return;
            }
            if let Some((_, table, key)) = self.expiries.pop_first() {
                self.remove(table, &key);
            }
        }
    }
}

impl fmt::Debug for MemoryRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRecords").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_testkit::ManualClock;

    use super::{super::suite, *};

    #[tokio::test]
    async fn records_in_memory_keep_to_the_contract() {
        let clock = ManualClock::new();
        let records = MemoryRecords::new(Arc::new(clock.clone()));
        suite::run(Arc::new(records), &clock).await;
    }
}
