//! Removes quarantined files, which can contain tokens.

use super::{CredentialStore, Name, StoreError};
use crate::StartUrl;

impl CredentialStore {
    /// Removes the files that were quarantined as unreadable ([`StoreError::Corrupted`]): those of
    /// the origin of `start`, or all. Returns their number.
    ///
    /// # Errors
    /// When the directory cannot be read or a file cannot be removed.
    pub fn remove_corrupted(&self, start: Option<&StartUrl>) -> Result<usize, StoreError> {
        match start {
            Some(start) => self.0.remove_quarantined(&Name::tokens_of(start.url())),
            None => self.0.remove_quarantined(""),
        }
    }
}
