//! [`SealedRecords`]: records that are sealed as JSON.

use std::sync::Arc;

use portcullis_authorization_server::StoreError;
use portcullis_metadata::{Clock, UnixTime};
use portcullis_state_store::records::{
    Change, Condition, Outcome, RecordStore, StoredRecord, Table, Write,
};
use serde::{Serialize, de::DeserializeOwned};
use zeroize::Zeroizing;

use crate::{
    keys::{BrokerKeys, Purpose},
    sealed,
};

/// How many records of a table are checked for other keys.
const MAX_CHECKED: usize = 100;

/// Records that are sealed as JSON. The table and the key are the place of a seal (ST2).
#[derive(Clone)]
pub(crate) struct SealedRecords {
    store: Arc<dyn RecordStore>,
    keys: Arc<BrokerKeys>,
    clock: Arc<dyn Clock>,
}

/// A record as it was read. It can be replaced only while it is still the same.
pub(crate) struct Current<T> {
    pub(crate) value: T,
    pub(crate) expires: UnixTime,
    stored: Zeroizing<Vec<u8>>,
}

/// What there is in the place of a record.
pub(crate) enum Found<T> {
    Current(Current<T>),
    /// A record that was sealed with a key that the operator removed, as it is stored.
    OfRemovedKey(Zeroizing<Vec<u8>>),
    Absent,
}

/// A record that was not sealed with a key of this server, or was changed.
#[derive(Debug, thiserror::Error)]
#[error(
    "a record of the table {0} cannot be opened: it was sealed with another key, or was changed"
)]
pub(crate) struct UnreadableRecord(&'static str);

/// A change of sealed records. It becomes one operation of the store.
pub(crate) struct SealedChange<'a> {
    records: &'a SealedRecords,
    change: Change,
}

impl SealedRecords {
    pub(crate) fn new(
        store: Arc<dyn RecordStore>,
        keys: Arc<BrokerKeys>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { store, keys, clock }
    }

    pub(crate) fn keys(&self) -> &BrokerKeys {
        &self.keys
    }

    pub(crate) fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// Returns the records without seals.
    pub(crate) fn plain(&self) -> &Arc<dyn RecordStore> {
        &self.store
    }

    /// Reads a record. Fails if the store cannot be read or the record cannot be opened: such a
    /// record is never an absent one.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        table: Table,
        key: &[u8],
    ) -> Result<Option<Current<T>>, StoreError> {
        let Some(StoredRecord { value, expires }) =
            self.store.get(table, key).await.map_err(failed)?
        else {
            return Ok(None);
        };
        self.open(table, key, value, expires).map(Some)
    }

    /// As [`read`](Self::read), for records that may be lost with their key.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        table: Table,
        key: &[u8],
    ) -> Result<Found<T>, StoreError> {
        let Some(StoredRecord { value, expires }) =
            self.store.get(table, key).await.map_err(failed)?
        else {
            return Ok(Found::Absent);
        };
        if sealed::is_of_removed_epoch(&self.keys, Purpose::Records, &value) {
            return Ok(Found::OfRemovedKey(value));
        }
        self.open(table, key, value, expires).map(Found::Current)
    }

    /// Reads the records whose key begins with `prefix`, at most `limit`, each with the rest of its
    /// key.
    pub(crate) async fn keys_after_prefix(
        &self,
        table: Table,
        prefix: &[u8],
        limit: usize,
    ) -> Result<Vec<Box<[u8]>>, StoreError> {
        let found = self.store.scan(table, prefix, None, limit).await;
        let found = found.map_err(failed)?.into_iter();
        Ok(found
            .filter_map(|(key, _)| key.get(prefix.len()..).map(Box::from))
            .collect())
    }

    /// Returns whether the records of a table were sealed with other keys: whether none of the
    /// first ones can be opened, although keys of their epochs are known. A record of a removed
    /// epoch does not count, because an operator removes a key deliberately.
    pub(crate) async fn are_foreign(&self, table: Table) -> Result<bool, StoreError> {
        let found = self.store.scan(table, &[], None, MAX_CHECKED).await;
        let mut are_foreign = false;
        for (key, record) in found.map_err(failed)? {
            let place: &[&[u8]] = &[table.0.as_bytes(), &key];
            let sealed = &record.value;
            if sealed::open(&self.keys, Purpose::Records, place, sealed).is_some() {
                return Ok(false);
            }
            are_foreign |= !sealed::is_of_removed_epoch(&self.keys, Purpose::Records, sealed);
        }
        Ok(are_foreign)
    }

    /// Begins a change.
    pub(crate) fn change(&self) -> SealedChange<'_> {
        SealedChange {
            records: self,
            change: Change::default(),
        }
    }

    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        table: Table,
        key: &[u8],
        stored: Zeroizing<Vec<u8>>,
        expires: UnixTime,
    ) -> Result<Current<T>, StoreError> {
        let place: &[&[u8]] = &[table.0.as_bytes(), key];
        let value = sealed::open(&self.keys, Purpose::Records, place, &stored)
            .and_then(|json| serde_json::from_slice(&json).ok())
            .ok_or_else(|| StoreError::Unreadable(Box::new(UnreadableRecord(table.0))))?;
        Ok(Current {
            value,
            expires,
            stored,
        })
    }
}

impl SealedChange<'_> {
    /// Requires that the record is still the one that was read.
    pub(crate) fn expect<T>(&mut self, table: Table, key: &[u8], current: &Current<T>) {
        self.change.conditions.push(Condition::Value {
            table,
            key: key.into(),
            expected: Some(current.stored.clone()),
        });
    }

    /// Requires that there still is what was found.
    pub(crate) fn expect_found<T>(&mut self, table: Table, key: &[u8], found: Found<T>) {
        let expected = match found {
            Found::Current(current) => Some(current.stored),
            Found::OfRemovedKey(stored) => Some(stored),
            Found::Absent => None,
        };
        self.change.conditions.push(Condition::Value {
            table,
            key: key.into(),
            expected,
        });
    }

    /// Requires that there is no record.
    pub(crate) fn expect_absent(&mut self, table: Table, key: &[u8]) {
        self.change.conditions.push(Condition::Value {
            table,
            key: key.into(),
            expected: None,
        });
    }

    /// Requires that the table has fewer records than `max`.
    pub(crate) fn expect_below(&mut self, table: Table, max: u64) {
        self.change.conditions.push(Condition::Below { table, max });
    }

    /// Writes a sealed record.
    pub(crate) fn put<T: Serialize>(
        &mut self,
        table: Table,
        key: &[u8],
        value: &T,
        expires: UnixTime,
    ) -> Result<(), StoreError> {
        let json = serde_json::to_vec(value)
            .map(Zeroizing::new)
            .map_err(failed)?;
        let place: &[&[u8]] = &[table.0.as_bytes(), key];
        let keys = &self.records.keys;
        let sealed = sealed::seal(keys, Purpose::Records, place, &json).map_err(failed)?;
        self.put_plain(table, key, sealed, expires);
        Ok(())
    }

    /// Writes a record that is not sealed.
    pub(crate) fn put_plain(
        &mut self,
        table: Table,
        key: &[u8],
        value: Vec<u8>,
        expires: UnixTime,
    ) {
        let value = Zeroizing::new(value);
        self.change.writes.push(Write::Put {
            table,
            key: key.into(),
            record: StoredRecord { value, expires },
        });
    }

    pub(crate) fn delete(&mut self, table: Table, key: &[u8]) {
        self.change.writes.push(Write::Delete {
            table,
            key: key.into(),
        });
    }

    /// Makes the change. Returns whether it was made: `false` if a record is another one than
    /// expected. Fails with [`StoreError::Full`] if a table is full.
    pub(crate) async fn commit(self) -> Result<bool, StoreError> {
        match self.records.store.commit(self.change).await {
            Ok(Outcome::Committed) => Ok(true),
            Ok(Outcome::Full) => Err(StoreError::Full),
            Ok(_) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Wraps an error of the store.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Failed(Box::new(error))
}
