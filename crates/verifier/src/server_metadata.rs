use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis_discovery::{Discovery, DiscoveryError, Fetch, UrlPolicy};
use portcullis_metadata::{AuthorizationServerMetadata, Clock, Issuer};

/// How long an issuer's metadata is used before it is asked for again.
const REMEMBERED_FOR: Duration = Duration::from_secs(60 * 60);

/// An issuer's metadata (RFC 8414), which all that is fetched from it goes by.
///
/// It is asked for by the issuer's refresh alone, of which there is one at a time.
pub(crate) struct ServerMetadata {
    issuer: Issuer,
    discovery: Discovery,
    remembered: Mutex<Option<Remembered>>,
    clock: Arc<dyn Clock>,
}

#[derive(Clone)]
struct Remembered {
    metadata: Arc<AuthorizationServerMetadata>,
    at: Duration,
}

impl ServerMetadata {
    pub(crate) fn new(issuer: Issuer, policy: UrlPolicy, fetch: Arc<dyn Fetch>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let discovery = Discovery::new(fetch, policy);
        Arc::new(Self { issuer, discovery, remembered: Mutex::new(None), clock })
    }

    /// The metadata, from memory where it is no older than an hour.
    pub(crate) async fn get(&self) -> Result<Arc<AuthorizationServerMetadata>, DiscoveryError> {
        let now = self.clock.monotonic();
        if let Some(known) = self.known()
            && now.saturating_sub(known.at) < REMEMBERED_FOR
        {
            return Ok(known.metadata);
        }
        let metadata = Arc::new(self.discovery.authorization_server(&self.issuer).await?);
        self.remember(Some(Remembered { metadata: Arc::clone(&metadata), at: now }));
        Ok(metadata)
    }

    /// Has it asked for anew the next time: something in it did not work.
    pub(crate) fn forget(&self) {
        self.remember(None);
    }

    fn known(&self) -> Option<Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, remembered: Option<Remembered>) {
        *self.remembered.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
    }
}
