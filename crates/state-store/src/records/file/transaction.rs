//! What a transaction of the database reads and writes.
//!
//! A stored value begins with its expiry, in milliseconds as 8 bytes, the most significant one
//! first. One more table has the expiries of all records in their order: an expiry, the name of the
//! table, a zero byte and the key.

use std::collections::{HashMap, hash_map::Entry};

use portcullis_metadata::UnixTime;
use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata as _, TableDefinition,
    TableError, WriteTransaction,
};
use zeroize::Zeroizing;

use super::super::{
    Change, Condition, KeyedRecord, MAX_SWEPT, Outcome, StoredRecord, Table, Write,
};

/// The number of bytes of an expiry.
const EXPIRY: usize = 8;
/// The table of all expiries. No [`Table`] has a hyphen in its name.
const EXPIRIES: &str = "records-expiries";

type Bytes = &'static [u8];

/// Returns the definition of a table.
pub(super) fn definition(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

/// Opens a table. `None` if nothing was ever written to it.
pub(super) fn open_for_reading(
    transaction: &ReadTransaction,
    table: Table,
) -> Result<Option<ReadOnlyTable<Bytes, Bytes>>, redb::Error> {
    match transaction.open_table(definition(table.0)) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns records in the order of their keys, as [`RecordStore::scan`](super::RecordStore::scan)
/// does.
pub(super) fn scan(
    table: &impl ReadableTable<Bytes, Bytes>,
    prefix: &[u8],
    after: Option<&[u8]>,
    limit: usize,
    now: UnixTime,
) -> Result<Vec<KeyedRecord>, redb::Error> {
    let start = after.filter(|after| *after > prefix).unwrap_or(prefix);
    let mut records = Vec::new();
    for entry in table.range::<&[u8]>(start..)? {
        if records.len() >= limit {
            break;
        }
        let (key, stored) = entry?;
        let key = key.value();
        if !key.starts_with(prefix) {
            break;
        }
        let record = decode(stored.value())?;
        if Some(key) != after && record.expires > now {
            records.push((Box::from(key), record));
        }
    }
    Ok(records)
}

/// Returns the record of a stored value.
pub(super) fn decode(stored: &[u8]) -> Result<StoredRecord, redb::Error> {
    let (expires, value) = split_expiry(stored)?;
    Ok(StoredRecord {
        value: Zeroizing::new(value.to_vec()),
        expires,
    })
}

/// The tables that a write transaction has opened.
pub(super) struct Tables<'transaction> {
    transaction: &'transaction WriteTransaction,
    opened: HashMap<String, redb::Table<'transaction, Bytes, Bytes>>,
    /// Whether anything was written.
    pub(super) is_changed: bool,
}

impl<'transaction> Tables<'transaction> {
    pub(super) fn new(transaction: &'transaction WriteTransaction) -> Self {
        Self {
            transaction,
            opened: HashMap::new(),
            is_changed: false,
        }
    }

    /// Makes a change if its conditions hold.
    pub(super) fn apply(&mut self, change: &Change, now: UnixTime) -> Result<Outcome, redb::Error> {
        for condition in &change.conditions {
            match condition {
                Condition::Value {
                    table,
                    key,
                    expected,
                } => {
                    let stored = self.table(table.0)?.get(&**key)?;
                    let record = stored.map(|stored| decode(stored.value())).transpose()?;
                    let current = record.filter(|record| record.expires > now);
                    if current.map(|record| record.value) != *expected {
                        return Ok(Outcome::Conflict);
                    }
                }
                Condition::Below { table, max } => {
                    if self.table(table.0)?.len()? >= *max {
                        return Ok(Outcome::Full);
                    }
                }
            }
        }
        for write in &change.writes {
            match write {
                Write::Put { table, key, record } => self.put(*table, key, record)?,
                Write::Delete { table, key } => self.delete(table.0, key)?,
            }
        }
        Ok(Outcome::Committed)
    }

    /// Removes the records that have expired, at most [`MAX_SWEPT`] of them.
    pub(super) fn sweep(&mut self, now: UnixTime) -> Result<(), redb::Error> {
        let end = now.as_millis().saturating_add(1).to_be_bytes();
        let expired = self
            .table(EXPIRIES)?
            .range::<&[u8]>(..end.as_slice())?
            .take(MAX_SWEPT)
            .map(|entry| entry.map(|(entry, _)| entry.value().to_vec()))
            .collect::<Result<Vec<_>, _>>()?;
        for entry in expired {
            let (name, key) = split_entry(&entry)?;
            self.delete(name, key)?;
        }
        Ok(())
    }

    fn put(&mut self, table: Table, key: &[u8], record: &StoredRecord) -> Result<(), redb::Error> {
        let mut stored = Zeroizing::new(Vec::with_capacity(EXPIRY + record.value.len()));
        stored.extend_from_slice(&record.expires.as_millis().to_be_bytes());
        stored.extend_from_slice(&record.value);
        self.is_changed = true;
        let before = self
            .table(table.0)?
            .insert(key, stored.as_slice())?
            .map(|before| split_expiry(before.value()).map(|(expires, _)| expires))
            .transpose()?;
        if before != Some(record.expires) {
            self.remove_expiry(before, table.0, key)?;
            let entry = entry(record.expires, table.0, key);
            self.table(EXPIRIES)?
                .insert(entry.as_slice(), [].as_slice())?;
        }
        Ok(())
    }

    fn delete(&mut self, table: &str, key: &[u8]) -> Result<(), redb::Error> {
        let before = self
            .table(table)?
            .remove(key)?
            .map(|before| split_expiry(before.value()).map(|(expires, _)| expires))
            .transpose()?;
        self.is_changed |= before.is_some();
        self.remove_expiry(before, table, key)
    }

    fn remove_expiry(
        &mut self,
        expires: Option<UnixTime>,
        table: &str,
        key: &[u8],
    ) -> Result<(), redb::Error> {
        if let Some(expires) = expires {
            self.table(EXPIRIES)?
                .remove(entry(expires, table, key).as_slice())?;
        }
        Ok(())
    }

    fn table(
        &mut self,
        name: &str,
    ) -> Result<&mut redb::Table<'transaction, Bytes, Bytes>, redb::Error> {
        match self.opened.entry(name.to_owned()) {
            Entry::Occupied(opened) => Ok(opened.into_mut()),
            Entry::Vacant(missing) => {
                Ok(missing.insert(self.transaction.open_table(definition(name))?))
            }
        }
    }
}

/// Returns the entry of a record in the table of expiries.
fn entry(expires: UnixTime, table: &str, key: &[u8]) -> Vec<u8> {
    [
        expires.as_millis().to_be_bytes().as_slice(),
        table.as_bytes(),
        &[0],
        key,
    ]
    .concat()
}

/// Returns the table and the key of an entry in the table of expiries.
fn split_entry(entry: &[u8]) -> Result<(&str, &[u8]), redb::Error> {
    let (_, name_and_key) = split_expiry(entry)?;
    let split = || {
        let end = name_and_key.iter().position(|byte| *byte == 0)?;
        let (name, key) = name_and_key.split_at(end);
        Some((str::from_utf8(name).ok()?, key.get(1..)?))
    };
    split().ok_or_else(|| redb::Error::Corrupted("an expiry names no record".to_owned()))
}

fn split_expiry(stored: &[u8]) -> Result<(UnixTime, &[u8]), redb::Error> {
    let (expires, rest) = stored
        .split_first_chunk::<EXPIRY>()
        .ok_or_else(|| redb::Error::Corrupted("a record has no expiry".to_owned()))?;
    Ok((UnixTime::from_millis(u64::from_be_bytes(*expires)), rest))
}
