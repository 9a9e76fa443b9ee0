use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::StatusCode;
use portcullis_discovery::{Discovery, Fetch, FetchRequest, UrlPolicy};
use portcullis_metadata::{Clock, Issuer, JwkSet};
use url::Url;

use crate::{RefreshError, schedule};

const MAX_BODY: usize = 256 * 1024;
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a discovered address is used before the issuer's metadata is asked again.
const DISCOVERED_FOR: Duration = Duration::from_secs(60 * 60);

/// Where an issuer's keys are fetched from.
pub(crate) struct Source {
    issuer: Issuer,
    /// The address from the configuration, which is never discovered.
    configured: Option<Url>,
    discovered: Mutex<Option<Discovered>>,
    discovery: Discovery,
    fetch: Arc<dyn Fetch>,
    policy: UrlPolicy,
    clock: Arc<dyn Clock>,
}

#[derive(Clone)]
struct Discovered {
    jwks_uri: Url,
    at: Duration,
}

/// A key set as it was published, and how long it counts as fresh.
pub(crate) struct Fetched {
    pub(crate) keys: JwkSet,
    pub(crate) max_age: Duration,
}

impl Source {
    pub(crate) fn new(
        issuer: Issuer,
        configured: Option<Url>,
        policy: UrlPolicy,
        fetch: Arc<dyn Fetch>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let discovery = Discovery::new(Arc::clone(&fetch), policy);
        Self { issuer, configured, discovered: Mutex::new(None), discovery, fetch, policy, clock }
    }

    /// Fetches the keys once. After a failure the address is discovered anew: it may have moved.
    pub(crate) async fn fetch(&self) -> Result<Fetched, RefreshError> {
        let fetched = self.fetch_from(self.jwks_uri().await?).await;
        if fetched.is_err() {
            self.remember(None);
        }
        fetched
    }

    async fn fetch_from(&self, jwks_uri: Url) -> Result<Fetched, RefreshError> {
        let mut request = FetchRequest::get(jwks_uri, self.policy);
        request.max_body = MAX_BODY;
        request.timeout = TIMEOUT;
        let response = self.fetch.fetch(request).await?;
        if response.status != StatusCode::OK {
            return Err(RefreshError::Status { status: response.status.as_u16() });
        }
        Ok(Fetched { keys: JwkSet::parse(&response.body)?, max_age: schedule::max_age(&response.headers) })
    }

    async fn jwks_uri(&self) -> Result<Url, RefreshError> {
        if let Some(configured) = &self.configured {
            return Ok(configured.clone());
        }
        let now = self.clock.monotonic();
        if let Some(known) = self.known()
            && now.saturating_sub(known.at) < DISCOVERED_FOR
        {
            return Ok(known.jwks_uri);
        }
        let metadata = self.discovery.authorization_server(&self.issuer).await?;
        let jwks_uri = metadata.jwks_uri.ok_or(RefreshError::NoJwksUri)?;
        self.remember(Some(Discovered { jwks_uri: jwks_uri.clone(), at: now }));
        Ok(jwks_uri)
    }

    fn known(&self) -> Option<Discovered> {
        self.discovered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, discovered: Option<Discovered>) {
        *self.discovered.lock().unwrap_or_else(PoisonError::into_inner) = discovered;
    }
}
