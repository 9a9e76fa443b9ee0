//! [`TokenEntry`] and [`ClientEntry`]: entries that are locked for writing.

use std::sync::Arc;

use portcullis_metadata::Issuer;

use super::{StoreError, backend::Backend, name::Name, persistent::EntryLock, record};
use crate::{ResourceToken, registration::registered::Registered};

/// A locked entry.
pub(super) struct Locked {
    pub(super) backend: Arc<Backend>,
    pub(super) name: Name,
    pub(super) lock: EntryLock,
}

impl Locked {
    /// Reads the entry. `None` if there is none. Fails when the entry cannot be read, or not be
    /// parsed; it is then quarantined.
    fn read<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.backend.read(&self.name)? else {
            return Ok(None);
        };
        parse(&bytes)
            .map(Some)
            .ok_or_else(|| self.backend.quarantine(&self.name))
    }

    fn write(&self, bytes: &[u8]) {
        self.backend.write(&self.name, bytes, &self.lock);
    }
}

/// A token's entry, locked.
pub(crate) struct TokenEntry(pub(super) Locked);

impl TokenEntry {
    /// Reads the token. `None` if there is none, or the entry has that of another resource. Fails
    /// when the entry cannot be read, or is corrupted.
    pub(crate) fn read(&self) -> Result<Option<ResourceToken>, StoreError> {
        // The name is a hash; the entry's content decides.
        Ok(self
            .0
            .read(record::parse_token)?
            .filter(|token| Name::token(token) == self.0.name))
    }

    /// Replaces the token. If the directory cannot be written, the token is kept in memory. Fails
    /// with [`StoreError::TooLarge`].
    pub(crate) fn write(&self, token: &ResourceToken) -> Result<(), StoreError> {
        self.0.write(&record::serialize_token(token)?);
        Ok(())
    }

    /// Checks that the replacement of this token can be written. A token that is only in memory has
    /// no other holder and can be replaced there. Fails when there is no permission or space, or
    /// the lock does not protect against other processes.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        if self.0.backend.is_unsaved(&self.0.name) {
            return Ok(());
        }
        self.0.lock.check_exclusive()?;
        self.0.backend.check_writable(&self.0.name)
    }

    /// Removes the entry. Fails when the file cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        self.0.backend.remove(&self.0.name)
    }
}

/// A registration's entry, locked.
pub(crate) struct ClientEntry(pub(super) Locked);

impl ClientEntry {
    /// Reads the client. `None` if there is none, or the entry has that of another authorization
    /// server. Fails when the entry cannot be read, or is corrupted.
    pub(crate) fn read(&self, issuer: &Issuer) -> Result<Option<Registered>, StoreError> {
        // The name is a hash; the entry's content decides.
        Ok(self
            .0
            .read(record::parse_client)?
            .filter(|client| client.issuer == *issuer))
    }

    /// Replaces the client. If the directory cannot be written, the client is kept in memory. Fails
    /// with [`StoreError::TooLarge`].
    pub(crate) fn write(&self, client: &Registered) -> Result<(), StoreError> {
        self.0.write(&record::serialize_client(client)?);
        Ok(())
    }

    /// Removes the entry. Fails when the file cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        self.0.backend.remove(&self.0.name)
    }
}
