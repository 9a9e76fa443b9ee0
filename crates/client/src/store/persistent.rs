//! [`Persistent`]: a directory, and the memory of this process for what cannot be written there.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use zeroize::Zeroizing;

use super::{Directory, Memory, Name, StoreError};

/// Entries in a directory. An entry that cannot be written is kept in memory until it can, so that what a server issued
/// once is not lost.
#[derive(Debug)]
pub(super) struct Persistent {
    pub(super) directory: Directory,
    unsaved: Memory,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Why the directory could not be written the last time. It is logged when it begins.
    failure: Option<StoreError>,
    next_attempt: Option<Instant>,
}

/// How long after an attempt to save the unsaved entries the next one follows.
const SAVE_AGAIN: Duration = Duration::from_secs(30);

impl Persistent {
    pub(super) fn new(directory: Directory) -> Self {
        Self { directory, unsaved: Memory::default(), state: Mutex::default() }
    }

    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        let mut names = self.directory.names(prefix)?;
        names.extend(self.unsaved.names(prefix));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    pub(super) fn read(&self, name: &Name) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        match self.unsaved.read(name) {
            Some(bytes) => Ok(Some(bytes)),
            None => self.directory.read(name),
        }
    }

    pub(super) fn write(&self, name: &Name, bytes: &[u8]) {
        match self.directory.write(name, bytes) {
            Ok(()) => self.unsaved.remove(name),
            Err(error) => {
                self.unsaved.write(name, bytes);
                self.note(error);
            }
        }
    }

    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        self.unsaved.remove(name);
        self.directory.remove(name)
    }

    /// Removes an entry that cannot be understood from where it was read.
    pub(super) fn put_aside(&self, name: &Name) -> StoreError {
        self.unsaved.remove(name);
        self.directory.put_aside(name)
    }

    /// The lock of an entry, and why it is for this process alone, where it is.
    pub(super) async fn lock(
        &self,
        name: &Name,
        limit: Duration,
    ) -> Result<(Box<dyn Send>, Option<StoreError>), StoreError> {
        match self.directory.lock(name, limit).await {
            Ok(guard) => Ok((guard, None)),
            Err(error @ StoreError::NotWritable { .. }) => {
                self.note(error.clone());
                Ok((self.unsaved.lock(name, limit).await?, Some(error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether an entry is in memory alone.
    pub(super) fn is_unsaved(&self, name: &Name) -> bool {
        self.unsaved.read(name).is_some()
    }

    /// Why there are entries in memory alone, where there are.
    pub(super) fn failure(&self) -> Option<StoreError> {
        self.state().failure.clone()
    }

    /// Tries to write the entries that are in memory alone, at most every 30 s. An entry that another process has replaced
    /// by a newer one is dropped.
    pub(super) async fn save(&self, is_newer: fn(&[u8], &[u8]) -> bool) {
        {
            let mut state = self.state();
            let now = Instant::now();
            if state.failure.is_none() || state.next_attempt.is_some_and(|next| now < next) {
                return;
            }
            state.next_attempt = Some(now + SAVE_AGAIN);
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
        tracing::info!("the credential store can be written again; everything is saved");
    }

    /// Logs that the directory cannot be written, once until it can be written again.
    pub(super) fn note(&self, error: StoreError) {
        let mut state = self.state();
        if state.failure.is_none() {
            tracing::warn!(
                reason = error.code(),
                "{error}; until then, new credentials are kept in memory and are lost when this process ends"
            );
            state.next_attempt = Some(Instant::now() + SAVE_AGAIN);
        }
        state.failure = Some(error);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
