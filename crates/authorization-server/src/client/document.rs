//! Client ID metadata documents (draft-ietf-oauth-client-id-metadata-document).

use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::{Fetch, FetchError, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{
    JwkSet,
    client::{ClientIdMetadataDocument, ClientIdUrl, ClientMetadata},
};
use serde_json::Value;
use url::Url;

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
    /// The maximum size of a document, and of its key set, in bytes. The draft recommends 5 KB
    /// (section 6.6).
    pub max_size: usize,
    /// The time limit for a document and its key set together.
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
    /// The public keys of a client with `private_key_jwt`, as a JWK set.
    pub jwks: Option<Value>,
    /// The time for which the document and its keys can be used without a new fetch. Zero if they
    /// must not be cached.
    pub age: Duration,
}

/// Why a client ID metadata document cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientDocumentError {
    /// The document cannot be fetched.
    #[error("the client's metadata document cannot be fetched")]
    Fetch(#[from] FetchError),
    /// The key set at the document's `jwks_uri` cannot be fetched.
    #[error("the client's key set cannot be fetched")]
    FetchKeys(#[source] FetchError),
    /// The host answers with 5xx or 429.
    #[error("the host of the client's metadata document cannot answer now")]
    Unavailable,
    /// The document, its key set, or a response is invalid.
    #[error("the client's metadata document cannot be used: {0}")]
    Invalid(&'static str),
}

impl ClientDocumentError {
    /// Returns the reason as a phrase or a code for the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Fetch(error) | Self::FetchKeys(error) => error.code(),
            Self::Unavailable => "the status is 5xx or 429",
            Self::Invalid(reason) => reason,
        }
    }

    /// Returns whether the host of the client cannot answer now. A document that is too large, or
    /// at a forbidden address, is not missing because of an outage.
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Fetch(error) | Self::FetchKeys(error) => {
                matches!(error, FetchError::Timeout | FetchError::Network(_))
            }
            Self::Unavailable => true,
            Self::Invalid(_) => false,
        }
    }
}

/// The maximum depth of arrays and objects in a document.
const MAX_DEPTH: usize = 32;

/// Fetches the document at `id` and returns the client that it describes. Failures must not be
/// cached (section 4.4).
///
/// `policy` decides which hosts and addresses are allowed (section 6.5). The client's metadata is
/// validated by `rules`, except that redirect URIs are required, and that the only authentication
/// methods are `none`, the default, and `private_key_jwt`. If `rules` are lenient, keys can be at a
/// `jwks_uri`, which is fetched under the same policy and limits after the document was found to be
/// valid.
///
/// Does not check whether the redirect URIs belong to the document's host.
///
/// # Errors
/// Fails when the document or its keys cannot be fetched within the limits, are not JSON with the
/// status 200, or do not describe this client.
pub async fn fetch_client_document(
    fetch: &dyn Fetch,
    policy: UrlPolicy,
    limits: &DocumentLimits,
    rules: RegistrationRules<'_>,
    id: &ClientIdUrl,
) -> Result<FetchedClient, ClientDocumentError> {
    let invalid = ClientDocumentError::Invalid;
    let started = Instant::now();
    let mut request = FetchRequest::get(id.url().clone(), policy);
    (request.max_body, request.timeout) = (limits.max_size, limits.timeout);
    let response = fetch.fetch(request).await?;
    check_response(&response)?;
    let metadata = ClientIdMetadataDocument::parse(&response.body, id)
        .map_err(|error| invalid(error.code()))?
        .metadata;
    let mut client = parse_client(&metadata, rules).map_err(invalid)?;
    let mut age = cache_lifetime(limits, &response.headers);
    let jwks = match parse_key_source(&metadata, rules).map_err(invalid)? {
        KeySource::None => None,
        KeySource::Inline(credential) => {
            client.credential = credential;
            metadata.jwks
        }
        KeySource::At(url) => {
            let mut request = FetchRequest::get(url, policy);
            request.max_body = limits.max_size;
            request.timeout = limits.timeout.saturating_sub(started.elapsed());
            let response = fetch
                .fetch(request)
                .await
                .map_err(ClientDocumentError::FetchKeys)?;
            age = age.min(cache_lifetime(limits, &response.headers));
            check_response(&response)?;
            let (credential, jwks) = parse_key_set(&response).map_err(invalid)?;
            client.credential = credential;
            Some(jwks)
        }
    };
    Ok(FetchedClient { client, jwks, age })
}

fn check_response(response: &FetchResponse) -> Result<(), ClientDocumentError> {
    let status = response.status;
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(ClientDocumentError::Unavailable);
    }
    if status != StatusCode::OK {
        return Err(ClientDocumentError::Invalid("the status is not 200"));
    }
    if !is_json(&response.headers) {
        return Err(ClientDocumentError::Invalid("the content type is not JSON"));
    }
    if is_deeper_than(&response.body, MAX_DEPTH) {
        return Err(ClientDocumentError::Invalid(
            "the document is nested too deeply",
        ));
    }
    Ok(())
}

/// Creates a public client from a document.
fn parse_client(
    metadata: &ClientMetadata,
    rules: RegistrationRules<'_>,
) -> Result<Client, &'static str> {
    let description = |error: ErrorResponse| error.description;
    Ok(Client {
        name: parse_name(metadata, rules).map_err(description)?,
        redirect_uris: parse_redirect_uris(metadata, rules).map_err(description)?,
        credential: Credential::None,
        grant_types: parse_grant_types(metadata, rules).map_err(description)?,
        scopes: None,
        may_introspect: false,
        is_document: true,
    })
}

/// Where the keys of a client are.
enum KeySource {
    /// The client is public.
    None,
    /// In the document.
    Inline(Credential),
    /// At this URL.
    At(Url),
}

fn parse_key_source(
    metadata: &ClientMetadata,
    rules: RegistrationRules<'_>,
) -> Result<KeySource, &'static str> {
    match metadata.token_endpoint_auth_method.as_deref() {
        None | Some("none") => return Ok(KeySource::None),
        Some(Credential::PRIVATE_KEY_JWT) => {}
        Some(_) => return Err("token_endpoint_auth_method is neither none nor private_key_jwt"),
    }
    match &metadata.jwks_uri {
        Some(_) if rules.is_lenient() && metadata.jwks.is_some() => {
            Err("the document has both jwks and jwks_uri")
        }
        Some(url) if rules.is_lenient() => match Url::parse(url) {
            Ok(url) => Ok(KeySource::At(url)),
            Err(_) => Err("jwks_uri is not a URL"),
        },
        _ => match parse_keys(metadata) {
            Ok(credential) => Ok(KeySource::Inline(credential)),
            Err(error) => Err(error.description),
        },
    }
}

fn parse_key_set(response: &FetchResponse) -> Result<(Credential, Value), &'static str> {
    let credential = JwkSet::parse(&response.body)
        .ok()
        .and_then(|keys| Credential::keys(&keys))
        .ok_or("the key set at jwks_uri has no usable public key")?;
    let jwks = serde_json::from_slice(&response.body).map_err(|_| "the key set is not JSON")?;
    Ok((credential, jwks))
}

/// Returns whether arrays and objects are nested deeper than this. The text need not be valid.
fn is_deeper_than(json: &[u8], limit: usize) -> bool {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        if is_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
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
    fn depth_is_counted_outside_of_strings() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(!is_deeper_than(nested(32).as_bytes(), 32));
        assert!(is_deeper_than(nested(33).as_bytes(), 32));
        let flat = nested(1).repeat(100);
        assert!(!is_deeper_than(flat.as_bytes(), 32));
        for string in [r#"["[[[["]"#, r#"["\"[[[["]"#, r#"["\\","[[["]"#] {
            assert!(!is_deeper_than(string.as_bytes(), 2), "{string}");
        }
        assert!(is_deeper_than(br#"["\\",[[["x"]]]]"#, 2));
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
