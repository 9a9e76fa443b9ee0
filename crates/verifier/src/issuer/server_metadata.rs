//! [`ServerMetadata`]: the cached authorization server metadata of one issuer.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use portcullis_discovery::{Discovery, DiscoveryError, Fetch, UrlPolicy};
use portcullis_metadata::{AuthorizationServerMetadata, Clock, Issuer};
use url::Url;

/// How long metadata is used before it is fetched again: 1 h. A URL that fails is discovered again
/// earlier.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);

/// The metadata of one issuer (RFC 8414). Only the issuer's refresh reads it, and there is one
/// refresh at a time.
pub(crate) struct ServerMetadata {
    issuer: Issuer,
    policy: UrlPolicy,
    discovery: Discovery,
    cached: Mutex<Option<CachedMetadata>>,
    clock: Arc<dyn Clock>,
}

/// Metadata and the monotonic time of its fetch.
#[derive(Clone)]
struct CachedMetadata {
    metadata: Arc<AuthorizationServerMetadata>,
    fetched: Duration,
}

impl ServerMetadata {
    /// Creates the metadata of an issuer. Nothing is fetched yet.
    pub(crate) fn new(
        issuer: Issuer,
        policy: UrlPolicy,
        fetch: Arc<dyn Fetch>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let discovery = Discovery::new(fetch, policy);
        Arc::new(Self {
            issuer,
            policy,
            discovery,
            cached: Mutex::new(None),
            clock,
        })
    }

    /// Returns the metadata. It is fetched if it is not cached or is older than an hour. Fails if
    /// it cannot be fetched, is malformed, or names another issuer. The time is limited by the
    /// fetcher only.
    pub(crate) async fn get(&self) -> Result<Arc<AuthorizationServerMetadata>, DiscoveryError> {
        let now = self.clock.monotonic();
        if let Some(cached) = self.cached()
            && now.saturating_sub(cached.fetched) < MAX_AGE
        {
            return Ok(cached.metadata);
        }
        let metadata = Arc::new(self.discovery.authorization_server(&self.issuer).await?);
        self.store(Some(CachedMetadata {
            metadata: Arc::clone(&metadata),
            fetched: now,
        }));
        Ok(metadata)
    }

    /// Returns the policy for a URL that the metadata names.
    pub(crate) async fn policy_of(&self, named: &Url) -> UrlPolicy {
        self.policy.of_named(self.issuer.url(), named).await
    }

    /// Removes the cached metadata after a URL in it has failed.
    pub(crate) fn forget(&self) {
        self.store(None);
    }

    fn cached(&self) -> Option<CachedMetadata> {
        self.cached.lock().clone()
    }

    fn store(&self, cached: Option<CachedMetadata>) {
        *self.cached.lock() = cached;
    }
}
