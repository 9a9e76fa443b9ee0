//! [`KeyFetcher`]: fetches the keys of one issuer.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_discovery::{Fetch, FetchError, FetchRequest, UrlPolicy};
use portcullis_metadata::{JwkSet, syntax::url_without_secrets};
use url::Url;

use super::{refresh_error::RefreshError, schedule, server_metadata::ServerMetadata};

/// The maximum length of a key set, in bytes. A set of [`MAX_KEYS`](portcullis_jose::MAX_KEYS) keys
/// with certificates fits.
const MAX_BODY: usize = 256 * 1024;
/// The maximum duration of the request for the keys.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Fetches the keys of one issuer from the configured URL or the `jwks_uri` of the issuer's
/// metadata.
pub(crate) struct KeyFetcher {
    /// The configured URL. `None` if it is discovered.
    configured: Option<Url>,
    metadata: Arc<ServerMetadata>,
    fetch: Arc<dyn Fetch>,
    policy: UrlPolicy,
}

/// A key set as published, and how long it is fresh.
pub(crate) struct FetchedKeys {
    pub(crate) keys: JwkSet,
    pub(crate) max_age: Duration,
    /// Where they are published, for errors.
    pub(crate) url: String,
}

impl KeyFetcher {
    /// Creates a fetcher for the configured URL or, without one, for that of the metadata.
    pub(crate) fn new(
        configured: Option<Url>,
        metadata: Arc<ServerMetadata>,
        policy: UrlPolicy,
        fetch: Arc<dyn Fetch>,
    ) -> Self {
        Self {
            configured,
            metadata,
            fetch,
            policy,
        }
    }

    /// Fetches the keys once. After a failure, the next fetch discovers the URL again, because it
    /// may have changed. Fails if the URL cannot be discovered, the status is not 200, or the body
    /// is not a key set. The time of the discovery is not limited here.
    pub(crate) async fn fetch(&self) -> Result<FetchedKeys, RefreshError> {
        let fetched = self.fetch_from_source().await;
        if fetched.is_err() {
            self.metadata.forget();
        }
        fetched
    }

    async fn fetch_from_source(&self) -> Result<FetchedKeys, RefreshError> {
        if let Some(configured) = &self.configured {
            return self.fetch_from(configured.clone(), self.policy).await;
        }
        let jwks_uri = self
            .metadata
            .get()
            .await?
            .jwks_uri
            .clone()
            .ok_or(RefreshError::NoJwksUri)?;
        let policy = self.metadata.policy_of(&jwks_uri).await;
        match self.fetch_from(jwks_uri, policy).await {
            Err(RefreshError::Fetch {
                url,
                error: FetchError::UrlPolicy(error),
            }) => Err(RefreshError::JwksUri { url, error }),
            fetched => fetched,
        }
    }

    async fn fetch_from(
        &self,
        jwks_uri: Url,
        policy: UrlPolicy,
    ) -> Result<FetchedKeys, RefreshError> {
        let url = String::from(url_without_secrets(&jwks_uri));
        let mut request = FetchRequest::get(jwks_uri, policy);
        request.max_body = MAX_BODY;
        request.timeout = TIMEOUT;
        let response = match self.fetch.fetch(request).await {
            Ok(response) => response,
            Err(error) => return Err(RefreshError::Fetch { url, error }),
        };
        if response.status != StatusCode::OK {
            let status = response.status.as_u16();
            return Err(RefreshError::Status { url, status });
        }
        match JwkSet::parse(&response.body) {
            Ok(keys) => Ok(FetchedKeys {
                keys,
                max_age: schedule::max_age(&response.headers),
                url,
            }),
            Err(error) => Err(RefreshError::Document { url, error }),
        }
    }
}
