//! [`RememberedConsent`]: a consent that a user wants to be remembered.

use std::time::Duration;

use portcullis_authorization_server::StoreError;
use portcullis_metadata::Scopes;
use portcullis_state_store::records::Table;
use serde::{Deserialize, Serialize};

use super::PendingRequest;
use crate::store::{hash, sealed_records::SealedRecords};

/// The remembered consents, by a hash of browser, client, redirect URI and resource.
const CONSENTS: Table = Table("broker_consents");
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
const MAX_CONSENTS: u64 = 100_000;

/// A consent that a user wants to be remembered (CO5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RememberedConsent {
    pub(crate) subject: Box<str>,
    /// The name of the provider at which the user signed in.
    pub(crate) provider: Box<str>,
    scopes: Box<str>,
}

impl RememberedConsent {
    /// Returns the consent that covers a request of this browser.
    pub(crate) async fn find(
        records: &SealedRecords,
        browser: &str,
        request: &PendingRequest,
    ) -> Result<Option<Self>, StoreError> {
        let found = records
            .read::<Self>(CONSENTS, &key(browser, request))
            .await?;
        Ok(found.map(|found| found.value).filter(|consent| {
            let approved = Scopes::parse(&consent.scopes).unwrap_or_default();
            approved.covers(&request.scopes())
        }))
    }

    /// Remembers a consent, instead of an earlier one for the same request.
    pub(crate) async fn remember(
        records: &SealedRecords,
        browser: &str,
        request: &PendingRequest,
        provider: &str,
        subject: &str,
    ) -> Result<(), StoreError> {
        let consent = Self {
            subject: subject.into(),
            provider: provider.into(),
            scopes: request.scopes.clone(),
        };
        let mut change = records.change();
        change.expect_below(CONSENTS, MAX_CONSENTS);
        let expires = records.now().saturating_add(LIFETIME);
        change.put(CONSENTS, &key(browser, request), &consent, expires)?;
        change.commit().await.map(drop)
    }

    /// Forgets the consent for a request of this browser.
    pub(crate) async fn forget(
        records: &SealedRecords,
        browser: &str,
        request: &PendingRequest,
    ) -> Result<(), StoreError> {
        let mut change = records.change();
        change.delete(CONSENTS, &key(browser, request));
        change.commit().await.map(drop)
    }
}

fn key(browser: &str, request: &PendingRequest) -> [u8; 32] {
    let audience = request.audience.as_deref().unwrap_or_default();
    hash(&[browser, &request.client_id, &request.redirect_uri, audience])
}
