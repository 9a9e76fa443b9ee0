//! [`Backend`]: the common interface of the stores.

use std::time::Duration;

use zeroize::Zeroizing;

use super::{Directory, Memory, Name, Persistent, StoreError};

/// Bytes by name, with a lock for each name.
#[derive(Debug)]
pub(super) enum Backend {
    Memory(Memory),
    Persistent(Persistent),
    /// Registrations in the directory where it can be written, and everything else in memory.
    ClientsInDirectory {
        directory: Directory,
        memory: Memory,
    },
}

impl Backend {
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.names(prefix)),
            Self::Persistent(persistent) => persistent.names(prefix),
            Self::ClientsInDirectory { directory, memory } => {
                let mut names = memory.names(prefix);
                if Name::is_client(prefix) {
                    names.extend(directory.names(prefix)?);
                }
                Ok(names)
            }
        }
    }

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

    /// Writes an entry whose lock the caller holds. What cannot be written to a directory is kept in memory.
    pub(super) fn write(&self, name: &Name, bytes: &[u8]) {
        match self {
            Self::Memory(memory) => memory.write(name, bytes),
            Self::Persistent(persistent) => persistent.write(name, bytes),
            Self::ClientsInDirectory { directory, memory } => {
                if !Name::is_client(&name.0) || directory.write(name, bytes).is_err() {
                    memory.write(name, bytes);
                }
            }
        }
    }

    /// Checks that an entry can be written, whose lock the caller holds.
    pub(super) fn check_writable(&self, name: &Name) -> Result<(), StoreError> {
        match self {
            // The latter needs no directory: its tokens are in memory anyway.
            Self::Memory(_) | Self::ClientsInDirectory { .. } => Ok(()),
            Self::Persistent(persistent) => {
                persistent.directory.check_writable(name).inspect_err(|error| persistent.note(error.clone()))
            }
        }
    }

    /// Whether an entry is in memory although it belongs into a directory.
    pub(super) fn is_unsaved(&self, name: &Name) -> bool {
        matches!(self, Self::Persistent(persistent) if persistent.is_unsaved(name))
    }

    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.remove(name);
                Ok(())
            }
            Self::Persistent(persistent) => persistent.remove(name),
            Self::ClientsInDirectory { directory, memory } => {
                memory.remove(name);
                if Name::is_client(&name.0) { directory.remove(name) } else { Ok(()) }
            }
        }
    }

    /// Renames what cannot be understood, and says so.
    pub(super) fn put_aside(&self, name: &Name) -> StoreError {
        match self {
            // Nothing but this crate writes there.
            Self::Memory(memory) => {
                memory.remove(name);
                StoreError::Corrupted { path: name.0.as_str().into(), kept: "nowhere".into() }
            }
            Self::Persistent(persistent) => persistent.put_aside(name),
            Self::ClientsInDirectory { directory, .. } => directory.put_aside(name),
        }
    }

    /// The lock of an entry, and why it is for this process alone, where it should not be.
    pub(super) async fn lock(
        &self,
        name: &Name,
        limit: Duration,
    ) -> Result<(Box<dyn Send>, Option<StoreError>), StoreError> {
        match self {
            Self::Memory(memory) => Ok((memory.lock(name, limit).await?, None)),
            Self::Persistent(persistent) => persistent.lock(name, limit).await,
            Self::ClientsInDirectory { directory, memory } => {
                if Name::is_client(&name.0)
                    && let Ok(lock) = directory.lock(name, limit).await
                {
                    return Ok((lock, None));
                }
                Ok((memory.lock(name, limit).await?, None))
            }
        }
    }
}
