//! [`RecordStore`]: durable records that are changed by compare and swap.

mod error;
mod file;
mod memory;
#[cfg(feature = "redis")]
mod redis_records;

use portcullis_metadata::UnixTime;
use zeroize::Zeroizing;

pub use self::{error::RecordError, file::FileRecords, memory::MemoryRecords};
#[cfg(feature = "redis")]
pub use self::{error::RedisFailure, redis_records::RedisRecords};

/// A boxed future, as an object-safe trait returns it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Durable records in tables, by key. A key and a value are any bytes.
///
/// A change is one operation that another request, another replica or a crash cannot divide: all of
/// its writes are made if all of its conditions hold, and none of them otherwise. It returns after
/// the change is durable.
///
/// Records expire. At its time of expiry and later, a record is absent for every method but
/// [`count`](Self::count) and [`Condition::Below`], whether it has been removed yet or not.
pub trait RecordStore: Send + Sync + 'static {
    /// Returns a record. `None` if there is none.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    fn get(
        &self,
        table: Table,
        key: &[u8],
    ) -> BoxFuture<'_, Result<Option<StoredRecord>, RecordError>>;

    /// Makes a change. See [`Outcome`].
    ///
    /// # Errors
    /// Fails when the change cannot be made durable. It may have been made nevertheless, unless the
    /// error is [`RecordError::TooLarge`] or [`RecordError::QueueFull`].
    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Outcome, RecordError>>;

    /// Returns records in the order of their keys: at most `limit` ones whose key begins with
    /// `prefix` and is greater than `after`.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<KeyedRecord>, RecordError>>;

    /// Returns the number of records of a table. Expired ones that were not removed yet count.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    fn count(&self, table: Table) -> BoxFuture<'_, Result<u64, RecordError>>;

    /// Removes expired records, at most [`MAX_SWEPT`] at a time, those first that expired first.
    /// Call it every few seconds.
    ///
    /// # Errors
    /// Fails when the store cannot be changed.
    fn sweep(&self) -> BoxFuture<'_, Result<(), RecordError>>;
}

/// The name of a table: lower-case letters, digits and underscores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Table(pub &'static str);

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The value. It may be a secret.
    pub value: Zeroizing<Vec<u8>>,
    /// When the record expires.
    pub expires: UnixTime,
}

/// A record with its key.
pub type KeyedRecord = (Box<[u8]>, StoredRecord);

/// Conditions, and the writes that are made if all of them hold.
#[derive(Debug, Default)]
pub struct Change {
    /// What must be in the store.
    pub conditions: Vec<Condition>,
    /// What is then written.
    pub writes: Vec<Write>,
}

/// What must be in the store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Condition {
    /// The record has exactly this value, or is absent (`None`).
    Value {
        /// The table.
        table: Table,
        /// The key.
        key: Box<[u8]>,
        /// The expected value.
        expected: Option<Zeroizing<Vec<u8>>>,
    },
    /// The table has fewer records than `max`. Expired ones that were not removed yet count.
    Below {
        /// The table.
        table: Table,
        /// The maximum number of records.
        max: u64,
    },
}

/// A write.
#[derive(Debug)]
#[non_exhaustive]
pub enum Write {
    /// Inserts or replaces a record.
    Put {
        /// The table.
        table: Table,
        /// The key.
        key: Box<[u8]>,
        /// The record.
        record: StoredRecord,
    },
    /// Removes a record, if there is one.
    Delete {
        /// The table.
        table: Table,
        /// The key.
        key: Box<[u8]>,
    },
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// All writes were made, and are durable.
    Committed,
    /// A record has another value than expected. Nothing was written.
    Conflict,
    /// A table is full. Nothing was written.
    Full,
}

/// The maximum length of a key, in bytes.
pub const MAX_KEY: usize = 1024;
/// The maximum length of a value, in bytes.
pub const MAX_VALUE: usize = 256 * 1024;
/// The maximum number of records that one [`sweep`](RecordStore::sweep) removes.
pub const MAX_SWEPT: usize = 2048;

impl Change {
    /// Checks that a store can hold what the change writes.
    fn check_size(&self) -> Result<(), RecordError> {
        let fits = |write: &Write| match write {
            Write::Put { key, record, .. } => {
                key.len() <= MAX_KEY && record.value.len() <= MAX_VALUE
            }
            Write::Delete { .. } => true,
        };
        if self.writes.iter().all(fits) {
            Ok(())
        } else {
            Err(RecordError::TooLarge)
        }
    }
}

#[cfg(test)]
mod suite;
