//! [`Backend`]: the common interface of the stores.

use std::{path::PathBuf, time::Duration};

use zeroize::Zeroizing;

use super::{Directory, Memory, Name, Persistent, StoreError, persistent::EntryLock};

/// Bytes by name, with a lock for each name.
#[derive(Debug)]
pub(super) enum Backend {
    /// Everything in memory.
    Memory(Memory),
    /// Everything in the directory, if it is writable.
    Persistent(Persistent),
    /// Registrations in the directory if it is writable, otherwise in memory as everything else.
    ClientsInDirectory {
        directory: Directory,
        memory: Memory,
    },
}

impl Backend {
    /// The names that begin with a prefix. Fails when the directory cannot be read.
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.names(prefix)),
            Self::Persistent(persistent) => persistent.names(prefix),
            Self::ClientsInDirectory { directory, memory } => {
                let mut names = memory.names(prefix);
                if Name::is_client(prefix) {
                    names.extend(directory.names(prefix)?);
                    names.sort_unstable();
                    names.dedup();
                }
                Ok(names)
            }
        }
    }

    /// Reads an entry. `None` if there is none. Fails when the file cannot be read, or others can
    /// read it.
    pub(super) fn read(&self, name: &Name) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.read(name)),
            Self::Persistent(persistent) => persistent.read(name),
            Self::ClientsInDirectory { directory, memory } => match memory.read(name) {
                None if Name::is_client(&name.0) => directory.read(name),
                held => Ok(held),
            },
        }
    }

    /// Writes an entry whose lock the caller holds. If the directory is not writable, or the lock
    /// does not exclude other processes, the entry is kept in memory.
    pub(super) fn write(&self, name: &Name, bytes: &[u8], lock: &EntryLock) {
        match self {
            Self::Memory(memory) => memory.write(name, bytes),
            Self::Persistent(persistent) => persistent.write(name, bytes, lock),
            Self::ClientsInDirectory { directory, memory } => {
                let is_exclusive = Name::is_client(&name.0) && lock.check_exclusive().is_ok();
                if is_exclusive && directory.write(name, bytes).is_ok() {
                    // An earlier version, which could not be written, would be read instead.
                    memory.remove(name);
                } else {
                    memory.write(name, bytes);
                }
            }
        }
    }

    /// Checks that an entry whose lock the caller holds can be written.
    pub(super) fn check_writable(&self, name: &Name) -> Result<(), StoreError> {
        match self {
            // The entries to be checked are tokens, which these keep in memory.
            Self::Memory(_) | Self::ClientsInDirectory { .. } => Ok(()),
            Self::Persistent(persistent) => persistent.check_writable(name),
        }
    }

    /// Whether an entry is in memory although it belongs in a directory.
    pub(super) fn is_unsaved(&self, name: &Name) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Persistent(persistent) => persistent.is_unsaved(name),
            Self::ClientsInDirectory { memory, .. } => {
                Name::is_client(&name.0) && memory.read(name).is_some()
            }
        }
    }

    /// Removes an entry whose lock the caller holds. Fails when the file cannot be removed.
    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.remove(name);
                Ok(())
            }
            Self::Persistent(persistent) => persistent.remove(name),
            Self::ClientsInDirectory { directory, memory } => {
                memory.remove(name);
                if Name::is_client(&name.0) {
                    directory.remove(name)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// The file of an entry, unless it is in memory.
    pub(super) fn path(&self, name: &Name) -> Option<PathBuf> {
        match self {
            Self::Memory(_) => None,
            Self::Persistent(persistent) => {
                (!persistent.is_unsaved(name)).then(|| persistent.directory.entry(name))
            }
            Self::ClientsInDirectory { directory, .. } => {
                Name::is_client(&name.0).then(|| directory.entry(name))
            }
        }
    }

    /// Removes the quarantined files whose names begin with `prefix`, and returns their number.
    pub(super) fn remove_quarantined(&self, prefix: &str) -> Result<usize, StoreError> {
        match self {
            Self::Memory(_) => Ok(0),
            Self::Persistent(Persistent { directory, .. })
            | Self::ClientsInDirectory { directory, .. } => directory.remove_quarantined(prefix),
        }
    }

    /// Quarantines a corrupted entry and returns the error.
    pub(super) fn quarantine(&self, name: &Name) -> StoreError {
        match self {
            // Only this crate writes to memory.
            Self::Memory(memory) => {
                memory.remove(name);
                StoreError::Corrupted {
                    path: name.0.as_str().into(),
                    kept: "nowhere".into(),
                }
            }
            Self::Persistent(persistent) => persistent.quarantine(name),
            Self::ClientsInDirectory { directory, .. } => directory.quarantine(name),
        }
    }

    /// Locks an entry. Fails with [`StoreError::Busy`] when the lock is not free in time; otherwise
    /// when the lock file cannot be locked.
    pub(super) async fn lock(&self, name: &Name, limit: Duration) -> Result<EntryLock, StoreError> {
        match self {
            Self::Memory(memory) => Ok(EntryLock::exclusive(memory.lock(name, limit).await?)),
            Self::Persistent(persistent) => persistent.lock(name, limit).await,
            Self::ClientsInDirectory { directory, memory } if Name::is_client(&name.0) => {
                EntryLock::acquire(directory, memory, name, limit).await
            }
            Self::ClientsInDirectory { memory, .. } => {
                Ok(EntryLock::exclusive(memory.lock(name, limit).await?))
            }
        }
    }
}
