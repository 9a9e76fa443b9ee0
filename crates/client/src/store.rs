//! [`CredentialStore`]: stores tokens and registrations.

use std::{path::PathBuf, sync::Arc, time::Duration};

use portcullis_metadata::Issuer;
use url::Url;

use crate::{ResourceToken, StartUrl, registration::credentials::Registered};

mod backend;
mod directory;
mod error;
mod imported;
mod memory;
mod name;
mod persistent;
mod record;

pub use error::StoreError;
pub use imported::ImportedToken;

use backend::Backend;
use directory::Directory;
use memory::Memory;
use name::Name;
use persistent::Persistent;

/// Where tokens and registrations are kept: one entry for each authorization server and resource (and start URL, where
/// that is another one), one for each authorization server and redirect URI.
///
/// An entry is read by anybody who has the store and written only by who holds its lock, so that of two processes that
/// want to refresh the same token one waits, and then finds the other's. Cheap to clone.
///
/// In a directory, each entry is a file that its owner alone can read (mode 0600, in a directory of mode 0700 where
/// the directory is made here). It is written beside, synced and renamed into place, so that a crash leaves the old
/// entry or the new one. A file that cannot be understood is renamed, not removed, and reported
/// ([`StoreError::Corrupted`]). What cannot be written is kept in memory, with one warning in the log, and written once
/// that is possible; a file that others can read is refused ([`StoreError::Exposed`]). At most 1,000 entries
/// of one kind are looked at.
///
/// What is written is not encrypted: whoever reads the owner's files reads the tokens.
#[derive(Clone, Debug)]
pub struct CredentialStore(Arc<Backend>);

/// How long a lock is waited for where only a request is made under it.
const SHORT: Duration = Duration::from_secs(30);
/// How long where a person is asked: somewhat longer than a person has.
const LONG: Duration = Duration::from_secs(6 * 60);

impl CredentialStore {
    /// A store that is gone with the process, for up to 1,024 entries: the one that was written first goes when there
    /// are more.
    pub fn in_memory() -> Self {
        Self(Arc::new(Backend::Memory(Memory::default())))
    }

    /// A store in a directory, which is made with the first entry.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Backend::Persistent(Persistent::new(Directory::new(directory.into())))))
    }

    /// Checks that an entry can be written, for commands that are of no use otherwise. It makes the directory.
    ///
    /// # Errors
    /// [`StoreError::NotWritable`] when there is no permission or space; [`StoreError::Busy`].
    pub async fn check_writable(&self) -> Result<(), StoreError> {
        let locked = self.lock(Name::probe(), SHORT).await?;
        locked.failure.map_or(Ok(()), Err)?;
        self.0.check_writable(&locked.name)
    }

    /// Why there are entries in memory that belong into the directory, where there are.
    pub fn write_failure(&self) -> Option<StoreError> {
        match &*self.0 {
            Backend::Memory(_) | Backend::ClientsInDirectory { .. } => None,
            Backend::Persistent(persistent) => persistent.failure(),
        }
    }

    /// Makes every write to the directory fail.
    #[cfg(test)]
    pub(crate) fn refuse_writes(&self, kind: Option<std::io::ErrorKind>) {
        if let Backend::Persistent(persistent) = &*self.0 {
            *persistent.directory.refusal.lock().unwrap() = kind;
        }
    }

    /// Tries again, from time to time, to write what could not be written.
    pub(crate) async fn save_unsaved(&self) {
        if let Backend::Persistent(persistent) = &*self.0 {
            persistent.save(record::is_newer).await;
        }
    }

    /// A store that keeps registrations in a directory, and everything else in memory. If the directory cannot be
    /// written, registrations are kept in memory too.
    pub fn clients_in_directory(directory: impl Into<PathBuf>) -> Self {
        let (directory, memory) = (Directory::new(directory.into()), Memory::default());
        Self(Arc::new(Backend::ClientsInDirectory { directory, memory }))
    }

    /// The directory of this user for a store: `portcullis` in `$XDG_STATE_HOME`, else in `~/.local/state`, else in
    /// `%LOCALAPPDATA%`. None where the environment names none.
    pub fn user_directory() -> Option<PathBuf> {
        let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        named("XDG_STATE_HOME")
            .or_else(|| named("HOME").map(|home| home.join(".local/state")))
            .or_else(|| named("LOCALAPPDATA"))
            .map(|directory| directory.join("portcullis"))
    }

    /// The tokens that may be used for `start` ([`ResourceToken::is_for`]): those that were obtained for it first, then
    /// the latest.
    ///
    /// # Errors
    /// When an entry cannot be read. One that cannot be understood is reported once, and then kept aside.
    pub fn tokens(&self, start: &StartUrl) -> Result<Vec<ResourceToken>, StoreError> {
        let mut found = Vec::new();
        for name in self.0.names(&Name::tokens_of(start.url()))? {
            let Some(bytes) = self.0.read(&name)? else { continue };
            match record::token(&bytes) {
                Some(token) if token.is_for(start) && Name::token(&token) == name => found.push(token),
                Some(_) => {}
                None => return Err(self.0.put_aside(&name)),
            }
        }
        found.sort_by_key(|token| std::cmp::Reverse((token.start_url() == Some(start), token.obtained_at())));
        Ok(found)
    }

    /// The URLs that tokens are stored for: their start URLs, or their resources where the start URL was not written down.
    /// An entry that cannot be understood is put aside and left out.
    ///
    /// # Errors
    /// When an entry cannot be read.
    pub fn start_urls(&self) -> Result<Vec<StartUrl>, StoreError> {
        let mut found = Vec::new();
        for name in self.0.names(Name::TOKENS)? {
            let Some(bytes) = self.0.read(&name)? else { continue };
            let Some(token) = record::token(&bytes) else {
                noticed::<()>(Err(self.0.put_aside(&name)))?;
                continue;
            };
            let start = token.start_url().cloned().or_else(|| StartUrl::new(token.resource().url().clone()).ok());
            found.extend(start.filter(|start| !found.contains(start)));
        }
        Ok(found)
    }

    /// Removes every registration at the authorization server, and returns their number.
    pub(crate) async fn forget_clients(&self, issuer: &Issuer) -> Result<usize, StoreError> {
        let names = self.0.names(&Name::clients_of(issuer))?;
        for name in &names {
            let locked = self.lock(name.clone(), SHORT).await?;
            locked.backend.remove(name)?;
        }
        Ok(names.len())
    }

    /// Locks the entry of a token.
    pub(crate) async fn lock_token(&self, token: &ResourceToken) -> Result<TokenEntry, StoreError> {
        Ok(TokenEntry(self.lock(Name::token(token), SHORT).await?))
    }

    /// Whether two tokens have the same entry, so that the one that is written last is kept.
    pub(crate) fn share_entry(one: &ResourceToken, other: &ResourceToken) -> bool {
        Name::token(one) == Name::token(other)
    }

    /// Locks the signing in to a resource, so that of several processes one asks the person.
    pub(crate) async fn lock_sign_in(&self, start: &StartUrl) -> Result<Box<dyn Send>, StoreError> {
        Ok(Box::new(self.lock(Name::sign_in(start.url()), LONG).await?))
    }

    /// Locks the registering at an authorization server, for every resource or for one start URL.
    pub(crate) async fn lock_client(
        &self,
        issuer: &Issuer,
        redirect: &Url,
        only_for: Option<&Url>,
    ) -> Result<ClientEntry, StoreError> {
        Ok(ClientEntry(self.lock(Name::client(issuer, Some(redirect), only_for), SHORT).await?))
    }

    /// Locks what a person said about the client.
    pub(crate) async fn lock_client_by_hand(
        &self,
        issuer: &Issuer,
        only_for: Option<&Url>,
    ) -> Result<ClientEntry, StoreError> {
        Ok(ClientEntry(self.lock(Name::client(issuer, None, only_for), SHORT).await?))
    }

    /// Whether a client is registered at the authorization server.
    pub(crate) fn knows(&self, issuer: &Issuer) -> bool {
        self.0.names(&Name::clients_of(issuer)).is_ok_and(|names| !names.is_empty())
    }

    /// The client of this name that is registered at the authorization server.
    pub(crate) fn client(&self, issuer: &Issuer, client_id: &str) -> Result<Option<Registered>, StoreError> {
        for name in self.0.names(&Name::clients_of(issuer))? {
            let Some(bytes) = self.0.read(&name)? else { continue };
            match record::client(&bytes) {
                Some(client) if client.issuer == *issuer && client.response.client_id == client_id => {
                    return Ok(Some(client));
                }
                Some(_) => {}
                None => return Err(self.0.put_aside(&name)),
            }
        }
        Ok(None)
    }

    async fn lock(&self, name: Name, limit: Duration) -> Result<Locked, StoreError> {
        let (guard, failure) = self.0.lock(&name, limit).await?;
        Ok(Locked { backend: self.0.clone(), name, failure, _guard: guard })
    }
}

/// Takes an entry that was kept aside for none, and says so where warnings are read.
pub(crate) fn noticed<T>(read: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(error @ StoreError::Corrupted { .. }) => {
            tracing::warn!(reason = error.code(), "{error}");
            Ok(None)
        }
        other => other,
    }
}

/// The one who may write an entry now.
struct Locked {
    backend: Arc<Backend>,
    name: Name,
    /// Why other processes do not see the lock, where they do not.
    failure: Option<StoreError>,
    _guard: Box<dyn Send>,
}

impl Locked {
    fn read<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.backend.read(&self.name)? else { return Ok(None) };
        parse(&bytes).map(Some).ok_or_else(|| self.backend.put_aside(&self.name))
    }
}

/// A token's entry, locked.
pub(crate) struct TokenEntry(Locked);

impl TokenEntry {
    pub(crate) fn read(&self) -> Result<Option<ResourceToken>, StoreError> {
        // The name is a hash: what the entry says of itself is what counts.
        Ok(self.0.read(record::token)?.filter(|token| Name::token(token) == self.0.name))
    }

    pub(crate) fn write(&self, token: &ResourceToken) -> Result<(), StoreError> {
        self.0.backend.write(&self.0.name, &record::of_token(token)?);
        Ok(())
    }

    /// Checks that the token that takes this one's place can be written. A token that is in memory alone has no other
    /// holder, so that it may be replaced there.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        if self.0.backend.is_unsaved(&self.0.name) {
            return Ok(());
        }
        self.0.failure.clone().map_or(Ok(()), Err)?;
        self.0.backend.check_writable(&self.0.name)
    }

    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        self.0.backend.remove(&self.0.name)
    }
}

/// A registration's entry, locked.
pub(crate) struct ClientEntry(Locked);

impl ClientEntry {
    pub(crate) fn read(&self, issuer: &Issuer) -> Result<Option<Registered>, StoreError> {
        // The name is a hash: what the entry says of itself is what counts (H3).
        Ok(self.0.read(record::client)?.filter(|client| client.issuer == *issuer))
    }

    pub(crate) fn write(&self, client: &Registered) -> Result<(), StoreError> {
        self.0.backend.write(&self.0.name, &record::of_client(client)?);
        Ok(())
    }

    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        self.0.backend.remove(&self.0.name)
    }
}

#[cfg(test)]
mod tests;
