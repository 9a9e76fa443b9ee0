//! [`Persistent`]: a directory, with a fallback in memory for entries that cannot be written.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use zeroize::Zeroizing;

use super::{Directory, Memory, Name, StoreError};

/// Entries in a directory. An entry that cannot be written is kept in memory until it can, so that no issued credential
/// is lost.
#[derive(Debug)]
pub(super) struct Persistent {
    pub(super) directory: Directory,
    /// The entries that could not be written.
    unsaved: Memory,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Why the last write to the directory failed. It is logged when writes begin to fail.
    failure: Option<StoreError>,
    /// When the unsaved entries are written again.
    next_attempt: Option<Instant>,
}

/// The interval between attempts to write the unsaved entries.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

impl Persistent {
    /// All entries are in the directory at first.
    pub(super) fn new(directory: Directory) -> Self {
        Self { directory, unsaved: Memory::default(), state: Mutex::default() }
    }

    /// The names that begin with a prefix, sorted.
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        let mut names = self.directory.names(prefix)?;
        names.extend(self.unsaved.names(prefix));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Reads an entry: the unsaved one is newer.
    pub(super) fn read(&self, name: &Name) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        match self.unsaved.read(name) {
            Some(bytes) => Ok(Some(bytes)),
            None => self.directory.read(name),
        }
    }

    /// Writes an entry whose lock the caller holds, to memory if the directory cannot be written.
    pub(super) fn write(&self, name: &Name, bytes: &[u8]) {
        match self.directory.write(name, bytes) {
            Ok(()) => self.unsaved.remove(name),
            Err(error) => {
                self.unsaved.write(name, bytes);
                self.record_failure(error);
            }
        }
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

    /// Locks an entry. The error, if any, is why the lock does not protect against other processes.
    pub(super) async fn lock(
        &self,
        name: &Name,
        limit: Duration,
    ) -> Result<(Box<dyn Send>, Option<StoreError>), StoreError> {
        match self.directory.lock(name, limit).await {
            Ok(guard) => Ok((guard, None)),
            Err(error @ StoreError::NotWritable { .. }) => {
                self.record_failure(error.clone());
                Ok((self.unsaved.lock(name, limit).await?, Some(error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether an entry is only in memory.
    pub(super) fn is_unsaved(&self, name: &Name) -> bool {
        self.unsaved.read(name).is_some()
    }

    /// Why there are entries only in memory, if there are any.
    pub(super) fn failure(&self) -> Option<StoreError> {
        self.state().failure.clone()
    }

    /// Tries to write the entries that are only in memory, at most every 30 s. An entry that another process has
    /// replaced by a newer one is dropped.
    pub(super) async fn save(&self, is_newer: fn(&[u8], &[u8]) -> bool) {
        {
            let mut state = self.state();
            let now = Instant::now();
            if state.failure.is_none() || state.next_attempt.is_some_and(|next| now < next) {
                return;
            }
            state.next_attempt = Some(now + SAVE_INTERVAL);
        }
        for name in self.unsaved.names("") {
            let Ok(_guard) = self.directory.lock(&name, Duration::ZERO).await else { return };
            let Some(bytes) = self.unsaved.read(&name) else { continue };
            if self.directory.read(&name).is_ok_and(|saved| saved.is_some_and(|saved| is_newer(&saved, &bytes))) {
                self.unsaved.remove(&name);
                continue;
            }
            match self.directory.write(&name, &bytes) {
                Ok(()) => self.unsaved.remove(&name),
                Err(_) => return,
            }
        }
        self.state().failure = None;
        tracing::info!("the credential store can be written again; all credentials are saved");
    }

    /// Stores why the directory cannot be written. Logs it once until the unsaved entries are written.
    pub(super) fn record_failure(&self, error: StoreError) {
        let mut state = self.state();
        if state.failure.is_none() {
            tracing::warn!(
                reason = error.code(),
                "{error}; until then, new credentials are kept in memory and are lost when this process ends"
            );
            state.next_attempt = Some(Instant::now() + SAVE_INTERVAL);
        }
        state.failure = Some(error);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
