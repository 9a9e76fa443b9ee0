//! [`ClientDocuments`]: fetches client ID metadata documents.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode, header};
use portcullis_authorization_server::{ErrorCode, ErrorResponse};
use portcullis_discovery::{Fetch, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{
    Clock,
    client::{ClientIdMetadataDocument, ClientIdUrl},
    is_loopback,
};
use tokio::sync::Semaphore;

use crate::{
    clients::{
        Client, Credential,
        metadata::{parse_grant_types, parse_keys, parse_name, parse_redirect_uris},
    },
    tables::Table,
};

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

/// The maximum size of a document in bytes.
const MAX_DOCUMENT_SIZE: usize = 16 * 1024;
/// The time limit of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of concurrent fetches.
const MAX_FETCHES: usize = 8;
/// The maximum number of cached clients. The oldest is evicted first.
const MAX_CACHED: usize = 100;
/// The cache lifetime of a document without `Cache-Control`.
const DEFAULT_AGE: Duration = Duration::from_secs(60);
/// The maximum cache lifetime of a document.
const MAX_AGE: Duration = Duration::from_secs(300);

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
        let cache = Table::new(MAX_CACHED, MAX_AGE, Arc::clone(&clock));
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
        let mut request = FetchRequest::get(id.url().clone(), self.policy);
        (request.max_body, request.timeout) = (MAX_DOCUMENT_SIZE, FETCH_TIMEOUT);
        let response = self.fetch.fetch(request).await.map_err(|error| {
            tracing::info!(
                client.id = id.as_str(),
                reason = error.code(),
                "cannot fetch a client's metadata document"
            );
            FAILED
        })?;
        let client = parse_client(id, &response).map_err(|reason| {
            tracing::info!(
                client.id = id.as_str(),
                reason,
                "cannot use a client's metadata document"
            );
            FAILED
        })?;
        let client = Arc::new(client);
        let age = cache_lifetime(&response.headers);
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

/// Creates a client from a response with its document. The rules are those of open registration,
/// except that redirect URIs are required and the only authentication methods are `none`, the
/// default, and `private_key_jwt`.
fn parse_client(id: &ClientIdUrl, response: &FetchResponse) -> Result<Client, &'static str> {
    if response.status != StatusCode::OK {
        return Err("the status is not 200");
    }
    if !is_json(&response.headers) {
        return Err("the content type is not JSON");
    }
    let metadata = ClientIdMetadataDocument::parse(&response.body, id)
        .map_err(|error| error.code())?
        .metadata;
    let description = |error: ErrorResponse| error.description;
    let credential = match metadata
        .token_endpoint_auth_method
        .as_deref()
        .unwrap_or("none")
    {
        "none" => Credential::None,
        Credential::PRIVATE_KEY_JWT => parse_keys(&metadata).map_err(description)?,
        _ => return Err("token_endpoint_auth_method is neither none nor private_key_jwt"),
    };
    Ok(Client {
        name: parse_name(&metadata).map_err(description)?,
        redirect_uris: parse_redirect_uris(&metadata).map_err(description)?,
        credential,
        grant_types: parse_grant_types(&metadata).map_err(description)?,
        scopes: None,
        may_introspect: false,
        is_document: true,
    })
}

/// Returns whether a request is the navigation of a browser, or comes from another program (Fetch
/// Metadata, section 2.2).
fn is_navigation(headers: &HeaderMap) -> bool {
    headers
        .get_all("sec-fetch-mode")
        .iter()
        .all(|mode| mode == "navigate")
}

/// Returns whether the content type is `application/json` or `application/<something>+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

/// Returns the cache lifetime of a response (RFC 9111 section 5.2.2), at most [`MAX_AGE`].
fn cache_lifetime(headers: &HeaderMap) -> Duration {
    let values = headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let directives: Vec<_> = values
        .flat_map(|value| value.split(','))
        .map(|part| part.trim().to_ascii_lowercase())
        .collect();
    if directives
        .iter()
        .any(|directive| matches!(directive.as_str(), "no-store" | "no-cache"))
    {
        return Duration::ZERO;
    }
    let age = directives
        .iter()
        .find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    age.map_or(DEFAULT_AGE, Duration::from_secs).min(MAX_AGE)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn scripts_and_subresources_are_no_navigations() {
        let name = header::HeaderName::from_static("sec-fetch-mode");
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

    #[test]
    fn documents_are_json() {
        for (content_type, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/oauth-client+json", true),
            ("text/json", false),
            ("application/jsonp", false),
            ("", false),
        ] {
            assert_eq!(
                is_json(&with(header::CONTENT_TYPE, content_type)),
                expected,
                "{content_type}"
            );
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn documents_are_cached_as_they_allow_within_bounds() {
        for (directives, seconds) in [
            ("max-age=10", 10),
            ("public, Max-Age=10", 10),
            ("max-age=86400", MAX_AGE.as_secs()),
            ("max-age=many", DEFAULT_AGE.as_secs()),
            ("max-age=0", 0),
            ("max-age=10, no-store", 0),
            ("no-cache", 0),
            ("public", DEFAULT_AGE.as_secs()),
        ] {
            let headers = with(header::CACHE_CONTROL, directives);
            assert_eq!(
                cache_lifetime(&headers),
                Duration::from_secs(seconds),
                "{directives}"
            );
        }
        assert_eq!(cache_lifetime(&HeaderMap::new()), DEFAULT_AGE);
    }
}
