//! [`Documents`]: client ID metadata documents.

use std::{sync::Arc, time::Duration};

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, StoreError,
    client::{
        Client, ClientDocumentError, DocumentLimits, FetchedClient, RedirectHosts,
        RegistrationRules, StoredClient, fetch_client_document,
    },
};
use portcullis_discovery::{Fetch, UrlPolicy};
use portcullis_metadata::client::ClientIdUrl;
use serde::{Deserialize, Serialize};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    clients::logged_client_id,
    records::DOCUMENTS,
    store::{BrokerStore, hash, sealed_records::Found},
};

/// The limits of a document (CIMD section 6.6).
const LIMITS: DocumentLimits = DocumentLimits {
    max_size: 5 * 1024,
    timeout: Duration::from_secs(10),
    default_age: Duration::from_secs(60 * 60),
    max_age: MAX_AGE,
};
const MIN_AGE: Duration = Duration::from_secs(5 * 60);
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// How long the document of a client that got a token is kept. Others are kept for [`MAX_AGE`], so
/// that documents that lead to no token cannot fill the table for long.
const LIFETIME: Duration = Duration::from_secs(180 * 24 * 3600);
/// The maximum number of documents that are fetched at once.
const MAX_FETCHES: usize = 8;
const MAX_DOCUMENTS: u64 = 1_000;

const FAILED: ErrorResponse = ErrorResponse::new(
    ErrorCode::InvalidClient,
    "The client's metadata document cannot be used. The log of this server has the reason.",
);
const BUSY: ErrorResponse = ErrorResponse::new(
    ErrorCode::TemporarilyUnavailable,
    "Too many metadata documents of clients are being fetched. Try again.",
);

/// Clients whose identifier is the URL of their metadata document
/// (draft-ietf-oauth-client-id-metadata-document).
pub(crate) struct Documents {
    fetch: Arc<dyn Fetch>,
    policy: UrlPolicy,
    redirects: RedirectHosts,
    /// Whether documents may be at `http` URLs with a loopback host.
    allows_loopback: bool,
    /// One for each fetch at a time. The URL selects it, so that a document is fetched once.
    fetches: [Mutex<()>; MAX_FETCHES],
}

/// How old a document may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// At most 24 hours, if its host cannot be reached.
    Recent,
    /// The last valid one suffices if its host cannot be reached.
    LastValid,
}

/// The last valid document of a client.
#[derive(Debug, Serialize, Deserialize)]
struct DocumentRecord {
    client: StoredClient,
    fetched: u64,
    fresh_until: u64,
    /// Whether the client got a token.
    is_used: bool,
}

impl Documents {
    /// `base_url` is that of the broker: if it has a loopback host, documents may be there, too.
    pub(crate) fn new(
        fetch: Arc<dyn Fetch>,
        redirects: RedirectHosts,
        policy: UrlPolicy,
        allows_loopback: bool,
    ) -> Self {
        Self {
            fetch,
            policy,
            redirects,
            allows_loopback,
            fetches: Default::default(),
        }
    }

    /// Returns the URL of the document if an identifier is one.
    pub(crate) fn url(&self, id: &str) -> Option<ClientIdUrl> {
        match self.allows_loopback {
            true => ClientIdUrl::parse_or_loopback_http(id).ok(),
            false => ClientIdUrl::parse(id).ok(),
        }
    }

    /// Returns the client that a document describes. A document that is fresh is not fetched again.
    pub(crate) async fn find(
        &self,
        store: &BrokerStore,
        url: &ClientIdUrl,
        freshness: Freshness,
    ) -> Result<Arc<Client>, ErrorResponse> {
        let key = hash(&[url.as_str()]);
        if let Some(client) = self.fresh(store, &key).await? {
            return Ok(client);
        }
        let fetch = self
            .fetches
            .get(usize::from(key[0]) % MAX_FETCHES)
            .ok_or(BUSY)?;
        let Ok(_one) = timeout(LIMITS.timeout, fetch.lock()).await else {
            let client = self.stored(store, &key, freshness).await?;
            return client.ok_or(BUSY);
        };
        // Another request may have fetched it meanwhile.
        if let Some(client) = self.fresh(store, &key).await? {
            return Ok(client);
        }
        let rules = RegistrationRules::Lenient(&self.redirects);
        let fetched = fetch_client_document(&*self.fetch, self.policy, &LIMITS, rules, url).await;
        match fetched {
            Ok(fetched) => self.keep(store, &key, fetched).await,
            Err(error) => {
                tracing::info!(
                    client.id = logged_client_id(url.as_str()),
                    reason = error.reason(),
                    "a client's metadata document cannot be used"
                );
                self.last_valid(store, &key, &error, freshness).await
            }
        }
    }

    async fn fresh(
        &self,
        store: &BrokerStore,
        key: &[u8],
    ) -> Result<Option<Arc<Client>>, ErrorResponse> {
        let record = read(store, key).await?;
        let fresh = record.filter(|record| store.now().as_secs() < record.fresh_until);
        Ok(fresh
            .and_then(|record| record.client.restore().ok())
            .map(Arc::new))
    }

    /// Keeps a document, unless there are too many: then it is used this time only.
    async fn keep(
        &self,
        store: &BrokerStore,
        key: &[u8],
        fetched: FetchedClient,
    ) -> Result<Arc<Client>, ErrorResponse> {
        let stored = StoredClient::of_document(&fetched).map_err(|_| FAILED)?;
        let now = store.now();
        let mut change = store.records().change();
        let previous = read(store, key).await?;
        if previous.is_none() {
            change.expect_below(DOCUMENTS, MAX_DOCUMENTS);
        }
        let record = DocumentRecord {
            client: stored,
            fetched: now.as_secs(),
            fresh_until: now.saturating_add(fetched.age.max(MIN_AGE)).as_secs(),
            is_used: previous.is_some_and(|previous| previous.is_used),
        };
        let lifetime = if record.is_used { LIFETIME } else { MAX_AGE };
        let put = change.put(DOCUMENTS, key, &record, now.saturating_add(lifetime));
        let kept = match put {
            Ok(()) => change.commit().await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            match error {
                StoreError::Full => {
                    tracing::warn!("too many metadata documents of clients are kept")
                }
                error => return Err(unavailable(&error)),
            }
        }
        Ok(Arc::new(fetched.client))
    }

    /// Returns the client of the last valid document while the host of the client cannot be
    /// reached. A document that became invalid is not used any more.
    async fn last_valid(
        &self,
        store: &BrokerStore,
        key: &[u8],
        error: &ClientDocumentError,
        freshness: Freshness,
    ) -> Result<Arc<Client>, ErrorResponse> {
        if !error.is_outage() {
            return Err(FAILED);
        }
        let client = self.stored(store, key, freshness).await?;
        client.ok_or(FAILED)
    }

    /// Returns the client of the last valid document, if it may be used without a fetch.
    async fn stored(
        &self,
        store: &BrokerStore,
        key: &[u8],
        freshness: Freshness,
    ) -> Result<Option<Arc<Client>>, ErrorResponse> {
        let oldest = store.now().saturating_sub(MAX_AGE).as_secs();
        let record = read(store, key)
            .await?
            .filter(|record| freshness == Freshness::LastValid || record.fetched >= oldest);
        let client = record.and_then(|record| record.client.restore().ok());
        Ok(client.map(Arc::new))
    }

    /// Records that a client got a token. Its document is then kept for an outage of its host
    /// (DO7).
    pub(crate) async fn touch(
        &self,
        store: &BrokerStore,
        url: &ClientIdUrl,
    ) -> Result<(), StoreError> {
        let key = hash(&[url.as_str()]);
        let found = store.records().find::<DocumentRecord>(DOCUMENTS, &key);
        let Found::Current(mut current) = found.await? else {
            return Ok(());
        };
        let now = store.now();
        if current.value.is_used && current.expires > now.saturating_add(LIFETIME - MAX_AGE) {
            return Ok(());
        }
        current.value.is_used = true;
        let mut change = store.records().change();
        change.expect(DOCUMENTS, &key, &current);
        change.put(
            DOCUMENTS,
            &key,
            &current.value,
            now.saturating_add(LIFETIME),
        )?;
        // If the document was fetched meanwhile, the next token does this.
        change.commit().await.map(drop)
    }
}

/// Reads a document. One whose record was sealed with a removed key is absent, so that it is
/// fetched again.
async fn read(store: &BrokerStore, key: &[u8]) -> Result<Option<DocumentRecord>, ErrorResponse> {
    match store.records().find(DOCUMENTS, key).await {
        Ok(Found::Current(current)) => Ok(Some(current.value)),
        Ok(Found::OfRemovedKey(_) | Found::Absent) => Ok(None),
        Err(error) => Err(unavailable(&error)),
    }
}

fn unavailable(error: &StoreError) -> ErrorResponse {
    tracing::error!(
        error.code = error.code(),
        error = error as &dyn std::error::Error,
        "the metadata document of a client cannot be read or kept"
    );
    ErrorResponse::new(
        ErrorCode::TemporarilyUnavailable,
        "The clients of this server cannot be read now. Try again.",
    )
}
