//! [`ClientDocuments`]: fetches client ID metadata documents.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse,
    client::{
        Client, ClientDocumentError, DocumentLimits, FetchedClient, RegistrationRules,
        fetch_client_document,
    },
};
use portcullis_discovery::{Fetch, UrlPolicy};
use portcullis_metadata::{Clock, client::ClientIdUrl, syntax::is_loopback};
use tokio::sync::Semaphore;

use crate::tables::Table;

/// The clients whose identifier is the URL of their metadata document
/// (draft-ietf-oauth-client-id-metadata-document).
pub(crate) struct ClientDocuments {
    fetch: Arc<dyn Fetch>,
    policy: UrlPolicy,
    /// The clients of fetched documents, by URL.
    cache: Table<CachedClient>,
    fetch_permits: Semaphore,
    clock: Arc<dyn Clock>,
}

struct CachedClient {
    client: Arc<Client>,
    /// The monotonic time at which the document must be fetched again.
    expires_at: Duration,
}

const LIMITS: DocumentLimits = DocumentLimits {
    max_size: 16 * 1024,
    timeout: Duration::from_secs(5),
    default_age: Duration::from_secs(60),
    max_age: Duration::from_secs(300),
};
/// The maximum number of concurrent fetches.
const MAX_FETCHES: usize = 8;
/// The maximum number of cached clients. The oldest is evicted first.
const MAX_CACHED: usize = 100;

const FAILED: ErrorResponse = ErrorResponse::new(
    ErrorCode::InvalidClient,
    "The client's metadata document cannot be used. See the log of this server.",
);
const NOT_FETCHED: ErrorResponse = ErrorResponse::new(
    ErrorCode::InvalidClient,
    "A metadata document at a loopback host is fetched only when a browser opens the authorization page itself.",
);
const BUSY: ErrorResponse = ErrorResponse::new(
    ErrorCode::TemporarilyUnavailable,
    "Too many metadata documents are being fetched. Try again.",
);

impl ClientDocuments {
    pub(crate) fn new(fetch: Arc<dyn Fetch>, policy: UrlPolicy, clock: Arc<dyn Clock>) -> Self {
        let cache = Table::new(MAX_CACHED, LIMITS.max_age, Arc::clone(&clock));
        Self {
            fetch,
            policy,
            cache,
            fetch_permits: Semaphore::new(MAX_FETCHES),
            clock,
        }
    }

    /// Returns the client that the document at `id` describes. The document is fetched unless it is
    /// cached. Failures are not cached. The description of the error is a sentence for the user.
    ///
    /// `headers` are those of the request that names the client. A document at a loopback host is
    /// not fetched for the scripts and subresources of a web page: any page could thereby send
    /// requests to the servers of this machine, and learn from the response what listens there.
    pub(crate) async fn client(
        &self,
        id: &ClientIdUrl,
        headers: &HeaderMap,
    ) -> Result<Arc<Client>, ErrorResponse> {
        let now = self.clock.monotonic();
        let cached = self.cache.read(id.as_str(), |cached| {
            (now < cached.expires_at).then(|| Arc::clone(&cached.client))
        });
        if let Some(client) = cached.flatten() {
            return Ok(client);
        }
        if is_loopback(id.url()) && !is_navigation(headers) {
            tracing::info!(
                client.id = id.as_str(),
                "did not fetch a loopback metadata document for a page's request"
            );
            return Err(NOT_FETCHED);
        }
        let _permit = self.fetch_permits.try_acquire().map_err(|_| BUSY)?;
        let fetched = fetch_client_document(
            &*self.fetch,
            self.policy,
            &LIMITS,
            RegistrationRules::Strict,
            id,
        )
        .await;
        let FetchedClient { client, age, .. } = fetched.map_err(|error| {
            let message = match error {
                ClientDocumentError::Fetch(_) => "cannot fetch a client's metadata document",
                _ => "cannot use a client's metadata document",
            };
            tracing::info!(
                client.id = id.as_str(),
                reason = error.reason(),
                "{message}"
            );
            FAILED
        })?;
        let client = Arc::new(client);
        if !age.is_zero() {
            let cached = CachedClient {
                client: Arc::clone(&client),
                expires_at: now.saturating_add(age),
            };
            self.cache.insert(id.as_str(), cached);
        }
        Ok(client)
    }
}

/// Returns whether a request is the navigation of a browser, or comes from another program (Fetch
/// Metadata, section 2.2).
fn is_navigation(headers: &HeaderMap) -> bool {
    headers
        .get_all("sec-fetch-mode")
        .iter()
        .all(|mode| mode == "navigate")
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn scripts_and_subresources_are_no_navigations() {
        let name = HeaderName::from_static("sec-fetch-mode");
        assert!(is_navigation(&HeaderMap::new()));
        for (mode, expected) in [
            ("navigate", true),
            ("no-cors", false),
            ("cors", false),
            ("Navigate", false),
            ("", false),
        ] {
            assert_eq!(is_navigation(&with(name.clone(), mode)), expected, "{mode}");
        }
    }
}
