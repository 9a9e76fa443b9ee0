//! Client ID metadata documents (draft-ietf-oauth-client-id-metadata-document).

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::{Fetch, FetchError, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::client::{ClientIdMetadataDocument, ClientIdUrl};

use crate::{
    client::{
        Client, Credential, RegistrationRules,
        metadata::{parse_grant_types, parse_keys, parse_name, parse_redirect_uris},
    },
    error::ErrorResponse,
};

/// The limits of client ID metadata documents.
#[derive(Clone, Copy, Debug)]
pub struct DocumentLimits {
    /// The maximum size of a document in bytes. The draft recommends 5 KB (section 6.6).
    pub max_size: usize,
    /// The time limit of a fetch.
    pub timeout: Duration,
    /// The cache lifetime of a document without `Cache-Control`.
    pub default_age: Duration,
    /// The maximum cache lifetime of a document.
    pub max_age: Duration,
}

/// A client that its metadata document describes.
#[derive(Debug)]
pub struct FetchedClient {
    /// The client.
    pub client: Client,
    /// The time for which the document can be used without a new fetch. Zero if it must not be
    /// cached.
    pub age: Duration,
}

/// Why a client ID metadata document cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientDocumentError {
    /// The document cannot be fetched.
    #[error("the client's metadata document cannot be fetched")]
    Fetch(#[from] FetchError),
    /// The document or its response is invalid.
    #[error("the client's metadata document cannot be used: {0}")]
    Invalid(&'static str),
}

impl ClientDocumentError {
    /// Returns the reason as a phrase or a code for the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Fetch(error) => error.code(),
            Self::Invalid(reason) => reason,
        }
    }
}

/// Fetches the document at `id` and returns the client that it describes. Failures must not be
/// cached (section 4.4).
///
/// `policy` decides which hosts and addresses are allowed (section 6.5). Does not check whether the
/// redirect URIs belong to the document's host.
///
/// # Errors
/// Fails when the document cannot be fetched within the limits, is not JSON with the status 200, or
/// does not describe this client.
pub async fn fetch_client_document(
    fetch: &dyn Fetch,
    policy: UrlPolicy,
    limits: &DocumentLimits,
    rules: RegistrationRules<'_>,
    id: &ClientIdUrl,
) -> Result<FetchedClient, ClientDocumentError> {
    let mut request = FetchRequest::get(id.url().clone(), policy);
    (request.max_body, request.timeout) = (limits.max_size, limits.timeout);
    let response = fetch.fetch(request).await?;
    let client = parse_client(id, &response, rules).map_err(ClientDocumentError::Invalid)?;
    Ok(FetchedClient {
        client,
        age: cache_lifetime(limits, &response.headers),
    })
}

/// Creates a client from a response with its document. The rules are those of open registration,
/// except that redirect URIs are required and the only authentication methods are `none`, the
/// default, and `private_key_jwt`.
fn parse_client(
    id: &ClientIdUrl,
    response: &FetchResponse,
    rules: RegistrationRules<'_>,
) -> Result<Client, &'static str> {
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
        name: parse_name(&metadata, rules).map_err(description)?,
        redirect_uris: parse_redirect_uris(&metadata, rules).map_err(description)?,
        credential,
        grant_types: parse_grant_types(&metadata, rules).map_err(description)?,
        scopes: None,
        may_introspect: false,
        is_document: true,
    })
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

/// Returns the cache lifetime of a response (RFC 9111 section 5.2.2), at most the limit.
fn cache_lifetime(limits: &DocumentLimits, headers: &HeaderMap) -> Duration {
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
    age.map_or(limits.default_age, Duration::from_secs)
        .min(limits.max_age)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const LIMITS: DocumentLimits = DocumentLimits {
        max_size: 5 * 1024,
        timeout: Duration::from_secs(10),
        default_age: Duration::from_secs(60),
        max_age: Duration::from_secs(300),
    };

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
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
            ("max-age=86400", LIMITS.max_age.as_secs()),
            ("max-age=many", LIMITS.default_age.as_secs()),
            ("max-age=0", 0),
            ("max-age=10, no-store", 0),
            ("no-cache", 0),
            ("public", LIMITS.default_age.as_secs()),
        ] {
            let headers = with(header::CACHE_CONTROL, directives);
            assert_eq!(
                cache_lifetime(&LIMITS, &headers),
                Duration::from_secs(seconds),
                "{directives}"
            );
        }
        assert_eq!(
            cache_lifetime(&LIMITS, &HeaderMap::new()),
            LIMITS.default_age
        );
    }
}
