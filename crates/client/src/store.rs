//! Stores tokens and registrations.

use std::{path::PathBuf, sync::Arc, time::Duration};

use portcullis_metadata::Issuer;
use url::Url;

use crate::{ResourceToken, StartUrl, registration::registered::Registered};

mod access;
mod backend;
mod client_issuer;
mod corrupted;
mod directory;
mod entry;
mod error;
mod imported;
mod listing;
mod memory;
mod name;
mod persistent;
mod record;

pub(crate) use entry::{ClientEntry, TokenEntry};
pub use error::StoreError;
pub(crate) use error::ignore_corrupted;
pub use imported::ImportedToken;
pub use listing::{StoreListing, StoredToken, UnusableEntry};

use backend::Backend;
use directory::Directory;
use entry::Locked;
use memory::Memory;
use name::Name;
use persistent::Persistent;

/// Stores tokens and registrations: one entry for each authorization server and resource (and start
/// URL, if it differs), and one for each authorization server and redirect URI. For a
/// pre-registered client, it stores the authorization server at which it was used first, one entry
/// for each client identifier and start URL.
///
/// Every holder of the store can read an entry; only the holder of its lock can write it. If two
/// processes want to refresh the same token, the second one waits and then uses the token of the
/// first. Cheap to clone.
///
/// In a directory, each entry is a file that only its owner can read (mode 0600, in a directory
/// that is created with mode 0700). It is written to a temporary file, synced and renamed, so that
/// a crash leaves the old or the new entry. A corrupted file is renamed, not removed, and reported
/// ([`StoreError::Corrupted`]). An entry that cannot be written is kept in memory, with one warning
/// in the log, and written when that is possible; a file that others can access, and a directory
/// that others can read or write, are rejected ([`StoreError::Exposed`],
/// [`StoreError::ExposedDirectory`]), and so is one of another user ([`StoreError::OtherOwner`]).
/// At most 1,000 entries of one type are read.
///
/// Entries are not encrypted: everyone who can read the owner's files can read the tokens.
#[derive(Clone, Debug)]
pub struct CredentialStore(Arc<Backend>);

/// The lock timeout of operations that make only one request.
const REQUEST_LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// The lock timeout of a sign-in: longer than the user's time limit.
const SIGN_IN_LOCK_TIMEOUT: Duration = Duration::from_secs(6 * 60);

impl CredentialStore {
    /// Creates a store that is lost with the process. It has at most 1,024 entries; when it is
    /// full, the least recently written one is removed.
    pub fn in_memory() -> Self {
        Self(Arc::new(Backend::Memory(Memory::default())))
    }

    /// Creates a store in a directory. The directory is created with the first entry.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Backend::Persistent(Persistent::new(
            Directory::new(directory.into()),
            record::is_newer,
        ))))
    }

    /// Creates a store that keeps registrations in a directory, and everything else in memory. If
    /// the directory is not writable, registrations are kept in memory too.
    pub fn clients_in_directory(directory: impl Into<PathBuf>) -> Self {
        let directory = Directory::new(directory.into());
        let memory = Memory::default();
        Self(Arc::new(Backend::ClientsInDirectory { directory, memory }))
    }

    /// This user's directory for a store: `portcullis` in the first of `$XDG_STATE_HOME`,
    /// `$HOME/.local/state` and `%LOCALAPPDATA%` that is an absolute path. None if there is none.
    pub fn user_directory() -> Option<PathBuf> {
        portcullis_files::user_state_directory()
    }

    /// Checks that a token can be written, for commands that are useless otherwise. Creates the
    /// directory of a store that keeps tokens in one.
    ///
    /// # Errors
    /// [`StoreError::NotWritable`] when there is no permission or space; [`StoreError::Busy`].
    pub async fn check_writable(&self) -> Result<(), StoreError> {
        let locked = self.lock(Name::probe(), REQUEST_LOCK_TIMEOUT).await?;
        locked.lock.check_exclusive()?;
        self.0.check_writable(&locked.name)
    }

    /// Why entries that belong in the directory are in memory. None if there are no such entries.
    pub fn write_failure(&self) -> Option<StoreError> {
        match &*self.0 {
            Backend::Memory(_) | Backend::ClientsInDirectory { .. } => None,
            Backend::Persistent(persistent) => persistent.failure(),
        }
    }

    /// Makes every write to the directory fail with this error.
    #[cfg(test)]
    pub(crate) fn refuse_writes(&self, kind: Option<std::io::ErrorKind>) {
        let (Backend::Persistent(Persistent { directory, .. })
        | Backend::ClientsInDirectory { directory, .. }) = &*self.0
        else {
            return;
        };
        *directory.injected_error.lock() = kind;
    }

    /// Tries to write the entries that could not be written, from time to time.
    pub(crate) async fn save_unsaved(&self) {
        if let Backend::Persistent(persistent) = &*self.0 {
            persistent.save().await;
        }
    }

    /// The tokens that can be used for `start` ([`ResourceToken::is_for`]): those that were
    /// obtained for it first, then the latest first.
    ///
    /// # Errors
    /// When an entry cannot be read. A corrupted entry is quarantined, so that it is reported only
    /// once.
    pub fn tokens(&self, start: &StartUrl) -> Result<Vec<ResourceToken>, StoreError> {
        let mut found = Vec::new();
        for name in self.0.names(&Name::tokens_of(start.url()))? {
            let Some(bytes) = self.0.read(&name)? else {
                continue;
            };
            match record::parse_token(&bytes) {
                Some(token) if token.is_for(start) && Name::token(&token) == name => {
                    found.push(token)
                }
                Some(_) => {}
                None => return Err(self.0.quarantine(&name)),
            }
        }
        found.sort_by_key(|token| {
            std::cmp::Reverse((token.start_url() == Some(start), token.obtained_at()))
        });
        Ok(found)
    }

    /// The URLs for which tokens are stored: their start URLs, or their resources if the start URL
    /// was not stored. Corrupted entries are quarantined and omitted.
    ///
    /// # Errors
    /// When an entry cannot be read.
    pub fn start_urls(&self) -> Result<Vec<StartUrl>, StoreError> {
        let mut found = Vec::new();
        for name in self.0.names(Name::TOKENS)? {
            let Some(bytes) = self.0.read(&name)? else {
                continue;
            };
            let Some(token) = record::parse_token(&bytes) else {
                ignore_corrupted::<()>(Err(self.0.quarantine(&name)))?;
                continue;
            };
            let start = token
                .start_url()
                .cloned()
                .or_else(|| StartUrl::new(token.resource().url().clone()).ok());
            found.extend(start.filter(|start| !found.contains(start)));
        }
        Ok(found)
    }

    /// Removes every registration at the authorization server, and returns their number.
    pub(crate) async fn forget_clients(&self, issuer: &Issuer) -> Result<usize, StoreError> {
        let names = self.0.names(&Name::clients_of(issuer))?;
        for name in &names {
            let locked = self.lock(name.clone(), REQUEST_LOCK_TIMEOUT).await?;
            locked.backend.remove(name)?;
        }
        Ok(names.len())
    }

    pub(crate) async fn lock_token(&self, token: &ResourceToken) -> Result<TokenEntry, StoreError> {
        Ok(TokenEntry(
            self.lock(Name::token(token), REQUEST_LOCK_TIMEOUT).await?,
        ))
    }

    /// Whether two tokens share an entry, so that the one written last replaces the other.
    pub(crate) fn share_entry(one: &ResourceToken, other: &ResourceToken) -> bool {
        Name::token(one) == Name::token(other)
    }

    /// Locks the sign-in to a resource, so that only one of several processes asks the user.
    pub(crate) async fn lock_sign_in(&self, start: &StartUrl) -> Result<Box<dyn Send>, StoreError> {
        Ok(Box::new(
            self.lock(Name::sign_in(start.url()), SIGN_IN_LOCK_TIMEOUT)
                .await?,
        ))
    }

    /// Locks the registration at an authorization server, for every resource or for one start URL.
    pub(crate) async fn lock_client(
        &self,
        issuer: &Issuer,
        redirect: &Url,
        only_for: Option<&Url>,
    ) -> Result<ClientEntry, StoreError> {
        Ok(ClientEntry(
            self.lock(
                Name::client(issuer, Some(redirect), only_for),
                REQUEST_LOCK_TIMEOUT,
            )
            .await?,
        ))
    }

    /// Locks the client that the user entered.
    pub(crate) async fn lock_client_by_hand(
        &self,
        issuer: &Issuer,
        only_for: Option<&Url>,
    ) -> Result<ClientEntry, StoreError> {
        Ok(ClientEntry(
            self.lock(Name::client(issuer, None, only_for), REQUEST_LOCK_TIMEOUT)
                .await?,
        ))
    }

    /// The first of these authorization servers at which a client is registered. None if the store
    /// cannot be read. Reads the directory once.
    pub(crate) fn first_known<'a>(&self, issuers: &'a [Issuer]) -> Option<&'a Issuer> {
        let names = self
            .0
            .names(Name::CLIENTS)
            .ok()
            .filter(|names| !names.is_empty())?;
        issuers.iter().find(|issuer| {
            let prefix = Name::clients_of(issuer);
            names.iter().any(|name| name.0.starts_with(&prefix))
        })
    }

    /// Whether a client is registered at the authorization server.
    #[cfg(test)]
    pub(crate) fn knows(&self, issuer: &Issuer) -> bool {
        self.first_known(std::slice::from_ref(issuer)).is_some()
    }

    /// The client with this identifier that is registered at the authorization server.
    pub(crate) fn client(
        &self,
        issuer: &Issuer,
        client_id: &str,
    ) -> Result<Option<Registered>, StoreError> {
        for name in self.0.names(&Name::clients_of(issuer))? {
            let Some(bytes) = self.0.read(&name)? else {
                continue;
            };
            match record::parse_client(&bytes) {
                Some(client)
                    if client.issuer == *issuer && client.response.client_id == client_id =>
                {
                    return Ok(Some(client));
                }
                Some(_) => {}
                None => return Err(self.0.quarantine(&name)),
            }
        }
        Ok(None)
    }

    /// Waits for the lock of an entry, at most `limit`.
    async fn lock(&self, name: Name, limit: Duration) -> Result<Locked, StoreError> {
        let lock = self.0.lock(&name, limit).await?;
        Ok(Locked {
            backend: self.0.clone(),
            name,
            lock,
        })
    }
}

#[cfg(test)]
mod tests;
