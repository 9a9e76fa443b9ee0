//! [`Backend`]: the common interface of the stores.

use std::time::Duration;

use zeroize::Zeroizing;

use super::{Directory, Memory, Name, StoreError};

/// Bytes by name, with a lock for each name.
#[derive(Debug)]
pub(super) enum Backend {
    Memory(Memory),
    Directory(Directory),
}

impl Backend {
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.names(prefix)),
            Self::Directory(directory) => directory.names(prefix),
        }
    }

    pub(super) fn read(&self, name: &Name) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.read(name)),
            Self::Directory(directory) => directory.read(name),
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
        }
    }

    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.remove(name);
                Ok(())
            }
            Self::Directory(directory) => directory.remove(name),
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
            Self::Directory(directory) => directory.put_aside(name),
        }
    }

    pub(super) async fn lock(&self, name: &Name, limit: Duration) -> Result<Box<dyn Send>, StoreError> {
        match self {
            Self::Memory(memory) => memory.lock(name, limit).await,
            Self::Directory(directory) => directory.lock(name, limit).await,
        }
    }
}
