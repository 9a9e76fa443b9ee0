//! Counts of the requests per principal, resource and tool.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;
use portcullis_telemetry::{Effect, log_queue::slot_of_thread};

use crate::key::UsageKey;

/// The table of counts: rows up to a limit, and one row for all other keys.
pub(super) struct Usage {
    rows: HashTable<Row>,
    other: Counts,
    max_rows: usize,
    /// Randomly keyed, so that clients cannot choose tool names that collide. The table is small,
    /// so a fast hash suffices.
    hasher: DefaultHashBuilder,
}

struct Row {
    key: UsageKey<'static>,
    counts: Counts,
}

/// The counts of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// All requests.
    pub(super) requests: u64,
    /// Denied requests.
    pub(super) denied: u64,
    /// Failed requests: the upstream, the client or the server failed.
    pub(super) failed: u64,
}

impl Counts {
    pub(super) fn one(effect: Effect) -> Self {
        Self {
            requests: 1,
            denied: u64::from(effect == Effect::Deny),
            failed: u64::from(effect == Effect::Fail),
        }
    }

    fn add(&mut self, more: Self) {
        self.requests += more.requests;
        self.denied += more.denied;
        self.failed += more.failed;
    }
}

/// One usage table per thread that counts.
pub(super) struct UsageTables {
    tables: Box<[Mutex<Usage>]>,
    max_rows: usize,
}

impl UsageTables {
    /// Creates `tables` tables of at most `max_rows` rows each.
    pub(super) fn new(tables: usize, max_rows: usize) -> Self {
        Self {
            tables: (0..tables)
                .map(|_| Mutex::new(Usage::new(max_rows)))
                .collect(),
            max_rows,
        }
    }

    /// Adds to the counts of a row in the table of the calling thread.
    pub(super) fn count(&self, key: &UsageKey<'_>, counts: Counts) {
        self.tables[slot_of_thread() % self.tables.len()]
            .lock()
            .count(key, counts);
    }

    /// Empties all tables into one.
    pub(super) fn drain(&self) -> Usage {
        let mut sum = Usage::new(self.max_rows);
        self.tables
            .iter()
            .for_each(|table| table.lock().drain_into(&mut sum));
        sum
    }
}

impl Usage {
    fn new(max_rows: usize) -> Self {
        Self {
            rows: HashTable::new(),
            other: Counts::default(),
            max_rows,
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Adds to the counts of a row. Only a new row allocates.
    fn count(&mut self, key: &UsageKey<'_>, counts: Counts) {
        let hash = self.hasher.hash_one(key);
        if let Some(row) = self.rows.find_mut(hash, |row| row.key == *key) {
            row.counts.add(counts);
        } else if self.rows.len() < self.max_rows {
            let row = Row {
                key: key.clone().into_owned(),
                counts,
            };
            self.rows
                .insert_unique(hash, row, |row| self.hasher.hash_one(&row.key));
        } else {
            self.other.add(counts);
        }
    }

    /// Moves everything into another table.
    fn drain_into(&mut self, into: &mut Self) {
        for row in self.rows.drain() {
            into.count(&row.key, row.counts);
        }
        into.other.add(std::mem::take(&mut self.other));
    }

    /// Returns the rows in no particular order. The row without a key counts the requests that have
    /// no row of their own.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Option<&UsageKey<'static>>, Counts)> {
        let other = (self.other.requests > 0).then_some((None, self.other));
        self.rows
            .iter()
            .map(|row| (Some(&row.key), row.counts))
            .chain(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tool: &str) -> UsageKey<'_> {
        UsageKey::new("https://mcp.example.com/mcp", None, Some(tool))
    }

    /// J4: the table is bounded, each key has its own row, and every request is counted.
    #[test]
    fn keys_without_a_row_are_counted_together() {
        let mut usage = Usage::new(2);
        for tool in ["a", "b", "c", "a", "d"] {
            usage.count(&key(tool), Counts::one(Effect::Allow));
        }
        usage.count(&key("a"), Counts::one(Effect::Deny));
        usage.count(&key("e"), Counts::one(Effect::Fail));
        let mut collected = Usage::new(1);
        usage.drain_into(&mut collected);
        let requests: u64 = collected.rows().map(|(_, counts)| counts.requests).sum();
        assert_eq!(requests, 7);
        assert_eq!(collected.rows.len(), 1);
        assert_eq!(collected.rows().count(), 2);

        let (denied, failed) = collected.rows().fold((0, 0), |(denied, failed), (_, row)| {
            (denied + row.denied, failed + row.failed)
        });
        assert_eq!(denied, 1);
        assert_eq!(failed, 1);
        assert_eq!(usage.rows().count(), 0, "it was moved");
    }
}
