//! Registered clients.

use std::time::Duration;

use portcullis_authorization_server::{
    StoreError,
    client::{ClientRegistration, StoredClient},
};
use portcullis_metadata::UnixTime;
use serde::{Deserialize, Serialize};

use super::{
    BrokerStore, MAX_ATTEMPTS, contention,
    sealed_records::{Found, SealedChange, failed},
};
use crate::records::{CLIENTS, UNUSED_CLIENTS};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a registration lives without use.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);

/// A registered client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientRecord {
    pub(crate) client: StoredClient,
    registered: u64,
    /// When the client got a token the last time, at most a day too early.
    last_used: Option<u64>,
}

impl BrokerStore {
    /// Stores a client, or renews the registration of the same client. If there are too many, the
    /// one that was never used and is oldest goes (RG4).
    pub(super) async fn store_client(
        &self,
        registration: &ClientRegistration,
    ) -> Result<(), StoreError> {
        let id = registration.information.client_id.as_bytes();
        for _ in 0..MAX_ATTEMPTS {
            let now = self.now();
            let expires = now.saturating_add(self.client_lifetime());
            let mut change = self.records.change();
            let found = self.records.find::<ClientRecord>(CLIENTS, id).await?;
            if let Found::Current(current) = found {
                change.expect(CLIENTS, id, &current);
                change.put(CLIENTS, id, &current.value, expires)?;
                if current.value.last_used.is_none() {
                    put_unused(&mut change, id, current.value.registered, expires);
                }
            } else {
                let record = ClientRecord {
                    client: StoredClient::of_registration(registration).map_err(failed)?,
                    registered: now.as_secs(),
                    last_used: None,
                };
                change.expect_found(CLIENTS, id, found);
                change.expect_below(CLIENTS, self.max_clients);
                change.put(CLIENTS, id, &record, expires)?;
                put_unused(&mut change, id, record.registered, expires);
            }
            match change.commit().await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(StoreError::Full) => self.evict_client().await?,
                Err(error) => return Err(error),
            }
        }
        Err(contention())
    }

    /// Removes the client that was never used and is oldest. Fails if all were used.
    async fn evict_client(&self) -> Result<(), StoreError> {
        let oldest = self
            .records
            .keys_after_prefix(UNUSED_CLIENTS, &[], 1)
            .await?;
        let key = oldest.first().ok_or(StoreError::Full)?;
        let id = key.get(size_of::<u64>()..).ok_or(StoreError::Full)?;
        let mut change = self.records.change();
        let found = self.records.find::<ClientRecord>(CLIENTS, id).await?;
        let is_unused = match &found {
            Found::Current(current) => current.value.last_used.is_none(),
            // No client can use this registration.
            Found::OfRemovedKey(_) => true,
            Found::Absent => false,
        };
        if is_unused {
            change.delete(CLIENTS, id);
        }
        change.expect_found(CLIENTS, id, found);
        change.delete(UNUSED_CLIENTS, key);
        // If the client was used meanwhile, the caller tries the next one.
        change.commit().await.map(drop)
    }

    /// Finds a client. One whose record was sealed with a removed key is unknown, so that it
    /// registers again.
    pub(crate) async fn find_client(&self, id: &str) -> Result<Option<ClientRecord>, StoreError> {
        let found = self.records.find(CLIENTS, id.as_bytes()).await?;
        Ok(match found {
            Found::Current(current) => Some(current.value),
            Found::OfRemovedKey(_) | Found::Absent => None,
        })
    }

    /// Records that a registered client got a token, once a day. Its registration then lives at
    /// least as long as the grant (RG8).
    pub(crate) async fn touch_client(&self, id: &str) -> Result<(), StoreError> {
        let id = id.as_bytes();
        for _ in 0..MAX_ATTEMPTS {
            let Some(current) = self.records.read::<ClientRecord>(CLIENTS, id).await? else {
                return Ok(());
            };
            let now = self.now();
            let day_ago = now.saturating_sub(DAY).as_secs();
            if current.value.last_used.is_some_and(|used| used > day_ago) {
                return Ok(());
            }
            let record = ClientRecord {
                last_used: Some(now.as_secs()),
                ..current.value.clone()
            };
            let mut change = self.records.change();
            change.expect(CLIENTS, id, &current);
            change.put(
                CLIENTS,
                id,
                &record,
                now.saturating_add(self.client_lifetime()),
            )?;
            change.delete(UNUSED_CLIENTS, &unused_key(id, record.registered));
            if change.commit().await? {
                return Ok(());
            }
        }
        Err(contention())
    }

    fn client_lifetime(&self) -> Duration {
        LIFETIME.max(self.lifetimes.grant) + DAY
    }
}

fn put_unused(change: &mut SealedChange<'_>, id: &[u8], registered: u64, expires: UnixTime) {
    change.put_plain(
        UNUSED_CLIENTS,
        &unused_key(id, registered),
        Vec::new(),
        expires,
    );
}

/// The keys are in the order of the registrations.
fn unused_key(id: &[u8], registered: u64) -> Vec<u8> {
    [registered.to_be_bytes().as_slice(), id].concat()
}
