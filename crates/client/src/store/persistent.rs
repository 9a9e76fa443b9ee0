//! [`Persistent`]: a directory, with a fallback in memory for entries that cannot be written.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::{Directory, Memory, Name, StoreError};

/// Entries in a directory. An entry that cannot be written is kept in memory until it can, so that
/// no issued credential is lost while the process runs.
#[derive(Debug)]
pub(super) struct Persistent {
    pub(super) directory: Directory,
    /// The entries that could not be written, and the locks of this process.
    unsaved: Memory,
    is_newer: IsNewer,
    state: Mutex<State>,
}

/// Whether the first entry is newer than the second one. False if that is unknown.
pub(super) type IsNewer = fn(&[u8], &[u8]) -> bool;

/// The lock of an entry, until it is dropped.
pub(super) struct EntryLock {
    /// Why the lock does not exclude other processes. `None` if it does.
    failure: Option<StoreError>,
    _guard: Box<dyn Send>,
}

#[derive(Debug, Default)]
struct State {
    /// Why the directory could not be written last. It is `Some` while there are unsaved entries,
    /// and until a check finds that the directory can be written.
    failure: Option<StoreError>,
    /// When [`Persistent::save`] makes its next attempt.
    next_attempt: Option<Instant>,
}

/// The interval between attempts to write the unsaved entries.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

impl EntryLock {
    /// A lock that excludes every other user of the entry.
    pub(super) fn exclusive(guard: Box<dyn Send>) -> Self {
        Self {
            failure: None,
            _guard: guard,
        }
    }

    /// Locks an entry in this process, then its lock file. If the lock file cannot be opened or
    /// locked, the lock excludes only this process ([`check_exclusive`](Self::check_exclusive)).
    /// Fails with [`StoreError::Busy`] when the lock is not free in time.
    pub(super) async fn acquire(
        directory: &Directory,
        memory: &Memory,
        name: &Name,
        limit: Duration,
    ) -> Result<Self, StoreError> {
        let end = Instant::now() + limit;
        // Every lock has this part, so that a holder without the lock file excludes one that gets
        // it later.
        let Ok(in_process) = memory.lock(name, limit).await else {
            return Err(StoreError::Busy {
                path: directory.entry(name),
            });
        };
        match directory
            .lock(name, end.saturating_duration_since(Instant::now()))
            .await
        {
            Ok(file) => Ok(Self::exclusive(Box::new((file, in_process)))),
            Err(busy @ StoreError::Busy { .. }) => Err(busy),
            Err(error) => Ok(Self {
                failure: Some(error),
                _guard: in_process,
            }),
        }
    }

    /// Checks that the lock excludes other processes. Fails with [`StoreError::NotWritable`] when
    /// the lock file could not be opened, [`StoreError::Io`] when it could not be locked.
    pub(super) fn check_exclusive(&self) -> Result<(), StoreError> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl Persistent {
    /// All entries are in the directory at first. `is_newer` decides between an unsaved entry and
    /// one that another process wrote; the unsaved one is used if it returns false.
    pub(super) fn new(directory: Directory, is_newer: IsNewer) -> Self {
        Self {
            directory,
            unsaved: Memory::default(),
            is_newer,
            state: Mutex::default(),
        }
    }

    /// The names that begin with a prefix, sorted.
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        let mut names = self.directory.names(prefix)?;
        names.extend(self.unsaved.names(prefix));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Reads an entry: the unsaved one, unless another process has written a newer one since. Fails
    /// when there is no unsaved entry, and the file cannot be read or others can read it.
    pub(super) fn read(&self, name: &Name) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        match self.unsaved.read(name) {
            None => self.directory.read(name),
            Some(unsaved) => Ok(Some(self.read_newer(name, &unsaved).unwrap_or(unsaved))),
        }
    }

    /// Writes an entry. It is kept in memory if the directory cannot be written, or if the lock
    /// does not exclude other processes, which could write the same temporary file.
    pub(super) fn write(&self, name: &Name, bytes: &[u8], lock: &EntryLock) {
        match lock
            .check_exclusive()
            .and_then(|()| self.directory.write(name, bytes))
        {
            Ok(()) => self.unsaved.remove(name),
            Err(error) => {
                self.unsaved.write(name, bytes);
                self.record_failure(error);
            }
        }
    }

    /// Checks that an entry whose lock the caller holds can be written to the directory.
    pub(super) fn check_writable(&self, name: &Name) -> Result<(), StoreError> {
        self.directory
            .check_writable(name)
            .inspect_err(|error| self.record_failure(error.clone()))
    }

    /// Removes an entry whose lock the caller holds.
    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        self.unsaved.remove(name);
        self.directory.remove(name)
    }

    /// Quarantines a corrupted entry, in the directory or in memory.
    pub(super) fn quarantine(&self, name: &Name) -> StoreError {
        self.unsaved.remove(name);
        self.directory.quarantine(name)
    }

    /// Locks an entry. If the directory is not writable, the lock excludes only this process. Fails
    /// with [`StoreError::Busy`] when the lock is not free in time; [`StoreError::Io`] when the
    /// file cannot be locked.
    pub(super) async fn lock(&self, name: &Name, limit: Duration) -> Result<EntryLock, StoreError> {
        let lock = EntryLock::acquire(&self.directory, &self.unsaved, name, limit).await?;
        match lock.check_exclusive() {
            Err(error @ StoreError::NotWritable { .. }) => self.record_failure(error),
            other => other?,
        }
        Ok(lock)
    }

    /// Whether the current version of an entry is only in memory.
    pub(super) fn is_unsaved(&self, name: &Name) -> bool {
        self.unsaved
            .read(name)
            .is_some_and(|unsaved| self.read_newer(name, &unsaved).is_none())
    }

    /// Why there are entries only in memory, if there are any.
    pub(super) fn failure(&self) -> Option<StoreError> {
        let state = self.state.lock();
        if self.unsaved.is_empty() {
            None
        } else {
            state.failure.clone()
        }
    }

    /// Tries to write the entries that are only in memory, at most every [`SAVE_INTERVAL`]. An
    /// entry that another process has replaced by a newer one is dropped; one whose lock is not
    /// free waits for the next attempt.
    pub(super) async fn save(&self) {
        if !self.state.lock().is_due() {
            return;
        }
        for name in self.unsaved.names("") {
            // An error needs no record: the entry remains unsaved, and the log already has the
            // first reason.
            let _ = self.save_entry(&name).await;
        }
        if self.check_directory().await.is_err() {
            return;
        }
        let mut state = self.state.lock();
        // Another task may have failed to write an entry since. It records the failure only after
        // it has kept the entry, so that either the entry or its failure is seen here.
        if self.unsaved.is_empty() {
            state.failure = None;
            tracing::info!("the credential store can be written again; all credentials are saved");
        }
    }

    /// Writes an unsaved entry to the directory, or drops it if the directory has a newer one.
    async fn save_entry(&self, name: &Name) -> Result<(), StoreError> {
        let lock = self.lock(name, Duration::ZERO).await?;
        lock.check_exclusive()?;
        // The previous holder of the lock may have written or removed it.
        let Some(unsaved) = self.unsaved.read(name) else {
            return Ok(());
        };
        if self.read_newer(name, &unsaved).is_none() {
            self.directory.write(name, &unsaved)?;
        }
        self.unsaved.remove(name);
        Ok(())
    }

    /// Checks that the directory can be written, with an entry that is never written itself.
    async fn check_directory(&self) -> Result<(), StoreError> {
        let probe = Name::probe();
        let lock = self.lock(&probe, Duration::ZERO).await?;
        lock.check_exclusive()?;
        self.check_writable(&probe)
    }

    /// Reads the directory's entry if it is newer than the unsaved one. An entry that cannot be
    /// read is not.
    fn read_newer(&self, name: &Name, unsaved: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.directory
            .read(name)
            .ok()
            .flatten()
            .filter(|saved| (self.is_newer)(saved, unsaved))
    }

    /// Stores why the directory cannot be written. Logs it once until all entries are written.
    fn record_failure(&self, error: StoreError) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            tracing::warn!(
                reason = error.code(),
                "{error}; until then, new credentials are kept in memory and are lost when this process ends"
            );
            state.next_attempt = Some(Instant::now() + SAVE_INTERVAL);
        }
        state.failure = Some(error);
    }
}

impl State {
    /// Whether the directory is to be tried again now. If so, the next attempt is due after
    /// [`SAVE_INTERVAL`].
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.failure.is_some() && self.next_attempt.is_none_or(|next| next <= now);
        if is_due {
            self.next_attempt = Some(now + SAVE_INTERVAL);
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
