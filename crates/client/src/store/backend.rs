//! [`Backend`]: the common interface of the stores.

use std::time::Duration;

use zeroize::Zeroizing;

use super::{Directory, Memory, Name, StoreError};

/// Bytes by name, with a lock for each name.
#[derive(Debug)]
pub(super) enum Backend {
    Memory(Memory),
    Directory(Directory),
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
            Self::Directory(directory) => directory.names(prefix),
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
            Self::Directory(directory) => directory.read(name),
            Self::ClientsInDirectory { directory, memory } => match memory.read(name) {
                None if Name::is_client(&name.0) => directory.read(name),
                held => Ok(held),
            },
        }
    }

    /// Writes an entry whose lock the caller holds.
    pub(super) fn write(&self, name: &Name, bytes: &[u8]) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.write(name, bytes);
                Ok(())
            }
            Self::Directory(directory) => directory.write(name, bytes),
            Self::ClientsInDirectory { directory, memory } => {
                if !Name::is_client(&name.0) || directory.write(name, bytes).is_err() {
                    memory.write(name, bytes);
                }
                Ok(())
            }
        }
    }

    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.remove(name);
                Ok(())
            }
            Self::Directory(directory) => directory.remove(name),
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
            Self::Directory(directory) | Self::ClientsInDirectory { directory, .. } => directory.put_aside(name),
        }
    }

    pub(super) async fn lock(&self, name: &Name, limit: Duration) -> Result<Box<dyn Send>, StoreError> {
        match self {
            Self::Memory(memory) => memory.lock(name, limit).await,
            Self::Directory(directory) => directory.lock(name, limit).await,
            Self::ClientsInDirectory { directory, memory } => {
                if Name::is_client(&name.0)
                    && let Ok(lock) = directory.lock(name, limit).await
                {
                    return Ok(lock);
                }
                memory.lock(name, limit).await
            }
        }
    }
}
