//! [`StoreListing`]: the content of a store, for display.

use std::path::PathBuf;

use super::{CredentialStore, Name, StoreError, record};
use crate::ResourceToken;

/// The tokens of a store, and the entries that cannot be used.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct StoreListing {
    /// The tokens, in no particular order.
    pub tokens: Vec<StoredToken>,
    /// The entries that cannot be used.
    pub unusable: Vec<UnusableEntry>,
}

/// A token in a store.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredToken {
    /// The token.
    pub token: ResourceToken,
    /// Its file, unless it is in memory.
    pub file: Option<PathBuf>,
}

/// An entry that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusableEntry {
    /// Its file, unless it is in memory.
    pub file: Option<PathBuf>,
    /// Why it cannot be used. None if its content is malformed.
    pub error: Option<StoreError>,
}

impl CredentialStore {
    /// Reads every token. It changes nothing: a malformed entry is not quarantined.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn listing(&self) -> Result<StoreListing, StoreError> {
        let mut listing = StoreListing::default();
        for name in self.0.names(Name::TOKENS)? {
            let file = self.0.path(&name);
            match self.0.read(&name) {
                Ok(None) => {}
                Ok(Some(bytes)) => match record::parse_token(&bytes) {
                    Some(token) => listing.tokens.push(StoredToken { token, file }),
                    None => listing.unusable.push(UnusableEntry { file, error: None }),
                },
                Err(error) => listing.unusable.push(UnusableEntry {
                    file,
                    error: Some(error),
                }),
            }
        }
        Ok(listing)
    }
}
