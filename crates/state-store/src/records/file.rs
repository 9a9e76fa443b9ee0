//! [`FileRecords`]: records in a file of the state directory.

mod database;
mod transaction;
mod unchanged;
mod writer;

use std::{
    fmt,
    future::ready,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};

use parking_lot::RwLock;
use portcullis_metadata::Clock;
use redb::ReadableTableMetadata as _;
use tokio::sync::oneshot;

use self::{
    database::{Opened, RecordsFile},
    transaction::{decode, definition, open_for_reading, scan},
    writer::{Job, Writer},
};
use super::{
    BoxFuture, Change, KeyedRecord, Outcome, RecordError, RecordStore, StoredRecord, Table,
};
use crate::directory::StateDirectory;

/// The maximum number of changes that wait to be written.
const MAX_QUEUED: usize = 4096;

/// Records in the file `records.redb` of a [`StateDirectory`].
///
/// A thread writes: all changes that wait are written and synchronized together, and are answered
/// afterwards. At most 4,096 changes wait; further ones fail. A read sees all changes that were
/// answered before. It reads from the file in the thread that calls it, if the page is not in the
/// cache of 16 MiB.
///
/// After a write that failed, the next change opens the file again, and a damaged file is found
/// then. Until it can be opened, which is tried at most once a second, everything fails.
///
/// Dropping the store writes what waits.
pub struct FileRecords {
    path: PathBuf,
    opened: Arc<RwLock<Opened>>,
    clock: Arc<dyn Clock>,
    /// `None` while the store is dropped.
    jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl FileRecords {
    /// Opens the file of a directory, verifies it, and starts the writer thread. A missing file is
    /// created. The directory stays locked as long as the store exists.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written, is damaged or of another version, or if the
    /// thread cannot be created.
    pub fn open(directory: &StateDirectory, clock: Arc<dyn Clock>) -> Result<Self, RecordError> {
        Self::start(RecordsFile::new(directory), clock)
    }

    /// Opens the file of a directory and verifies it, as far as that can be done without changing
    /// anything: changes of the records are kept in memory, and end with the store. `None` if there
    /// is no file, or if another process uses the directory and the file can be read and written.
    ///
    /// # Errors
    /// Fails with the error of [`open`](Self::open).
    pub fn open_unchanged(
        directory: &Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, RecordError> {
        let path = directory.join(StateDirectory::RECORDS);
        if !path.try_exists().map_err(RecordError::io(&path))? {
            return Ok(None);
        }
        match StateDirectory::lock_unchanged(directory).map_err(RecordError::io(directory))? {
            Some(directory) => Self::start(RecordsFile::unchanged(&directory), clock).map(Some),
            None => database::open_nonempty(&path).map(|_| None),
        }
    }

    fn start(file: RecordsFile, clock: Arc<dyn Clock>) -> Result<Self, RecordError> {
        file.create_if_missing()?;
        let path = file.path().to_owned();
        let opened = Arc::new(RwLock::new(Ok(file.open()?)));
        let (jobs, waiting) = sync_channel(MAX_QUEUED);
        let writer = Writer::new(file, Arc::clone(&opened), Arc::clone(&clock), waiting);
        let named = thread::Builder::new().name("records".to_owned());
        let writer = named
            .spawn(move || writer.run())
            .map_err(RecordError::io(&path))?;
        Ok(Self {
            path,
            opened,
            clock,
            jobs: Some(jobs),
            writer: Some(writer),
        })
    }

    /// Sends a job to the writer at once, so that jobs are executed in the order of the calls.
    fn send<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, RecordError>>) -> Job,
    ) -> BoxFuture<'_, Result<T, RecordError>> {
        let (answer, answered) = oneshot::channel();
        let sent = match self.jobs.as_ref().map(|jobs| jobs.try_send(job(answer))) {
            Some(Ok(())) => Ok(answered),
            Some(Err(TrySendError::Full(_))) => Err(RecordError::QueueFull),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(RecordError::Closed),
        };
        Box::pin(async move { sent?.await.unwrap_or(Err(RecordError::Closed)) })
    }

    /// Reads from the last commit.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>,
    ) -> BoxFuture<'_, Result<T, RecordError>> {
        let result = match &*self.opened.read() {
            Ok(database) => database::read(&self.path, database, read),
            Err(error) => Err(error.clone()),
        };
        Box::pin(ready(result))
    }
}

impl RecordStore for FileRecords {
    fn get(
        &self,
        table: Table,
        key: &[u8],
    ) -> BoxFuture<'_, Result<Option<StoredRecord>, RecordError>> {
        let now = self.clock.now();
        self.read(|transaction| {
            let Some(table) = open_for_reading(transaction, table)? else {
                return Ok(None);
            };
            let stored = redb::ReadableTable::get(&table, key)?;
            let record = stored.map(|stored| decode(stored.value())).transpose()?;
            Ok(record.filter(|record| record.expires > now))
        })
    }

    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Outcome, RecordError>> {
        match change.check_size() {
            Ok(()) => self.send(|answer| Job::Commit { change, answer }),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<KeyedRecord>, RecordError>> {
        let now = self.clock.now();
        self.read(|transaction| match open_for_reading(transaction, table)? {
            Some(table) => scan(&table, prefix, after, limit, now),
            None => Ok(Vec::new()),
        })
    }

    fn count(&self, table: Table) -> BoxFuture<'_, Result<u64, RecordError>> {
        self.read(
            |transaction| match transaction.open_table(definition(table.0)) {
                Ok(table) => Ok(table.len()?),
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(0),
                Err(error) => Err(error.into()),
            },
        )
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), RecordError>> {
        self.send(|answer| Job::Sweep { answer })
    }
}

impl Drop for FileRecords {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(writer) = self.writer.take() {
            // The thread does not panic, and an error could not be reported here.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for FileRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRecords")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
