//! A store that fails when a test says so.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use parking_lot::Mutex;
use portcullis_state_store::records::{
    BoxFuture, Change, KeyedRecord, MemoryRecords, Outcome, RecordError, RecordStore, StoredRecord,
    Table, Write,
};

use crate::support::{Setup, json_of};

/// Every table and value that was written.
pub(crate) type Written = Arc<Mutex<Vec<(Table, Vec<u8>)>>>;

/// How a store fails.
#[derive(Default)]
pub(crate) struct Failures {
    pub(crate) reads: AtomicBool,
    pub(crate) writes: AtomicBool,
    pub(crate) is_full: AtomicBool,
}

/// Records in memory that can fail, and that remember every table and value that was written.
struct FailingRecords {
    records: MemoryRecords,
    failures: Arc<Failures>,
    written: Written,
}

impl Failures {
    pub(crate) fn set(failure: &AtomicBool, is_failing: bool) {
        failure.store(is_failing, Ordering::SeqCst);
    }

    fn read(&self) -> Result<(), RecordError> {
        match self.reads.load(Ordering::SeqCst) {
            true => Err(RecordError::Closed),
            false => Ok(()),
        }
    }
}

impl RecordStore for FailingRecords {
    fn get(
        &self,
        table: Table,
        key: &[u8],
    ) -> BoxFuture<'_, Result<Option<StoredRecord>, RecordError>> {
        match self.failures.read() {
            Ok(()) => self.records.get(table, key),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Outcome, RecordError>> {
        if self.failures.writes.load(Ordering::SeqCst) {
            return Box::pin(async { Err(RecordError::QueueFull) });
        }
        if self.failures.is_full.load(Ordering::SeqCst) {
            return Box::pin(async { Ok(Outcome::Full) });
        }
        for write in &change.writes {
            if let Write::Put { table, record, .. } = write {
                self.written.lock().push((*table, record.value.to_vec()));
            }
        }
        self.records.commit(change)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<KeyedRecord>, RecordError>> {
        match self.failures.read() {
            Ok(()) => self.records.scan(table, prefix, after, limit),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn count(&self, table: Table) -> BoxFuture<'_, Result<u64, RecordError>> {
        self.records.count(table)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        self.records.sweep()
    }
}

/// A broker over such records.
pub(crate) struct Fixture {
    pub(crate) setup: Setup,
    pub(crate) failures: Arc<Failures>,
    pub(crate) written: Written,
}

pub(crate) fn fixture() -> Fixture {
    let failures = Arc::new(Failures::default());
    let written = Arc::default();
    let (for_records, also_written) = (Arc::clone(&failures), Arc::clone(&written));
    let setup = Setup::over(
        move |clock| {
            Arc::new(FailingRecords {
                records: MemoryRecords::new(Arc::new(clock)),
                failures: for_records,
                written: also_written,
            })
        },
        |settings| {
            settings.claims.insert("email".into(), "email".into());
        },
    );
    Fixture {
        setup,
        failures,
        written,
    }
}

/// Asserts that a response says that the store cannot be used now.
pub(crate) fn assert_unavailable(response: &Response<Bytes>, step: &str) {
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{step}");
    assert_eq!(
        json_of(response)["error"],
        "temporarily_unavailable",
        "{step}"
    );
    assert!(response.headers().contains_key("retry-after"), "{step}");
}
