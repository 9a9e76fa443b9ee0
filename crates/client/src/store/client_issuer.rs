//! [`ClientIssuerEntry`]: the authorization server of a pre-registered client.

use std::{borrow::Cow, io, path::PathBuf};

use portcullis_metadata::Issuer;
use serde::{Deserialize, Serialize};

use super::{
    CredentialStore, Name, REQUEST_LOCK_TIMEOUT, StoreError, backend::Backend, entry::Locked,
};
use crate::StartUrl;

/// The version of the format.
const VERSION: u32 = 1;

/// The content of an entry. The name is a hash, so the content decides.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    version: u32,
    client_id: Cow<'a, str>,
    start: Cow<'a, str>,
    issuer: Cow<'a, str>,
}

/// The entry with the authorization server of a pre-registered client at a start URL, locked.
pub(crate) struct ClientIssuerEntry<'a> {
    locked: Locked,
    client_id: &'a str,
    start: &'a StartUrl,
}

impl CredentialStore {
    /// The authorization server at which the client was used first for `start`. `None` if it was
    /// not used yet. Fails when the entry cannot be read or parsed. It is not quarantined: without
    /// it, any authorization server would get the client's secret.
    pub(crate) fn client_issuer(
        &self,
        client_id: &str,
        start: &StartUrl,
    ) -> Result<Option<Issuer>, StoreError> {
        read(
            &self.0,
            &Name::client_issuer(client_id, start.url()),
            client_id,
            start,
        )
    }

    /// Stores the authorization server of a pre-registered client for `start`, unless there is one.
    /// An [`Authorizer`](crate::Authorizer) with this store sends the client's credentials to no
    /// other ([`AuthorizerSettings::client`](crate::AuthorizerSettings::client)).
    ///
    /// # Errors
    /// When the store cannot be read or locked.
    pub async fn bind_client(
        &self,
        client_id: &str,
        start: &StartUrl,
        issuer: &Issuer,
    ) -> Result<(), StoreError> {
        let entry = self.lock_client_issuer(client_id, start).await?;
        match entry.read()? {
            Some(_) => Ok(()),
            None => entry.write(issuer),
        }
    }

    /// Locks the entry with the authorization server of the client.
    pub(crate) async fn lock_client_issuer<'a>(
        &self,
        client_id: &'a str,
        start: &'a StartUrl,
    ) -> Result<ClientIssuerEntry<'a>, StoreError> {
        let locked = self
            .lock(
                Name::client_issuer(client_id, start.url()),
                REQUEST_LOCK_TIMEOUT,
            )
            .await?;
        Ok(ClientIssuerEntry {
            locked,
            client_id,
            start,
        })
    }
}

impl ClientIssuerEntry<'_> {
    /// As [`CredentialStore::client_issuer`].
    pub(crate) fn read(&self) -> Result<Option<Issuer>, StoreError> {
        read(
            &self.locked.backend,
            &self.locked.name,
            self.client_id,
            self.start,
        )
    }

    /// Replaces the authorization server. If the directory cannot be written, it is kept in memory.
    /// Fails with [`StoreError::TooLarge`].
    pub(crate) fn write(&self, issuer: &Issuer) -> Result<(), StoreError> {
        let record = Record {
            version: VERSION,
            client_id: self.client_id.into(),
            start: self.start.url().as_str().into(),
            issuer: issuer.as_str().into(),
        };
        let bytes = serde_json::to_vec(&record).map_err(|_| StoreError::TooLarge)?;
        self.locked
            .backend
            .write(&self.locked.name, &bytes, &self.locked.lock);
        Ok(())
    }

    /// Whether the authorization server is in memory although it belongs in a directory.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.locked.backend.is_unsaved(&self.locked.name)
    }
}

fn read(
    backend: &Backend,
    name: &Name,
    client_id: &str,
    start: &StartUrl,
) -> Result<Option<Issuer>, StoreError> {
    let Some(bytes) = backend.read(name)? else {
        return Ok(None);
    };
    let record = serde_json::from_slice::<Record<'_>>(&bytes).ok();
    let record = record.filter(|record| {
        (record.version, &*record.client_id, &*record.start)
            == (VERSION, client_id, start.url().as_str())
    });
    let issuer = record.and_then(|record| Issuer::parse(&record.issuer).ok());
    let path = || backend.path(name).unwrap_or_else(|| PathBuf::from(&name.0));
    issuer.map(Some).ok_or_else(|| StoreError::Io {
        path: path(),
        kind: io::ErrorKind::InvalidData,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ISSUER, RESOURCE, ScratchDirectory};

    /// H3: the authorization server of a client is kept for each client and start URL, also by a
    /// store that keeps tokens in memory. A damaged entry is an error, again and again.
    #[tokio::test]
    async fn the_server_of_a_client_is_kept() {
        let scratch = ScratchDirectory::new();
        let [start, other] =
            [RESOURCE, "https://mcp.example.com/other"].map(|url| StartUrl::parse(url).unwrap());
        let issuer = Issuer::parse(ISSUER).unwrap();
        let clients = CredentialStore::clients_in_directory(scratch.path());
        clients
            .lock_client_issuer("me", &start)
            .await
            .unwrap()
            .write(&issuer)
            .unwrap();

        let store = CredentialStore::in_directory(scratch.path());
        assert_eq!(store.client_issuer("me", &start).unwrap(), Some(issuer));
        assert_eq!(store.client_issuer("me", &other).unwrap(), None);
        assert_eq!(store.client_issuer("you", &start).unwrap(), None);
        assert!(store.tokens(&start).unwrap().is_empty());

        let file = store
            .0
            .path(&Name::client_issuer("me", start.url()))
            .unwrap();
        std::fs::write(file, "{}").unwrap();
        for _ in 0..2 {
            assert_eq!(
                store.client_issuer("me", &start).unwrap_err().code(),
                "store.io"
            );
        }
    }
}
