use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::{Fetch, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{ClientIdMetadataDocument, ClientIdUrl, Clock};
use tokio::sync::Semaphore;

use crate::{
    clients::{Client, Credential},
    oauth_error::OAuthRefusal,
    registration::{grant_types_of, keys_of, name_of, redirect_uris_of},
    tables::{Keep, Table},
};

/// The clients whose identifier is the URL of their own metadata document
/// (draft-ietf-oauth-client-id-metadata-document).
pub(crate) struct ClientDocuments {
    fetch: Arc<dyn Fetch>,
    policy: UrlPolicy,
    known: Table<Known>,
    room: Semaphore,
    clock: Arc<dyn Clock>,
}

struct Known {
    client: Arc<Client>,
    /// Until when the document need not be read again.
    until: Duration,
}

const MAX_DOCUMENT: usize = 16 * 1024;
const FETCH_TIME: Duration = Duration::from_secs(5);
/// How many documents are read at once.
const MAX_FETCHES: usize = 8;
/// How many clients are remembered; the oldest goes first.
const MAX_KNOWN: usize = 100;
/// How long a document counts whose answer does not say.
const DEFAULT_AGE: Duration = Duration::from_secs(60);
/// How long a document counts at most.
const MAX_AGE: Duration = Duration::from_secs(300);

const FAILED: &str = "The client's metadata document cannot be used. The log of this server says why.";
const BUSY: &str = "Too many metadata documents are being fetched. Try again.";

impl ClientDocuments {
    pub(crate) fn new(fetch: Arc<dyn Fetch>, policy: UrlPolicy, clock: Arc<dyn Clock>) -> Self {
        let known = Table::new(MAX_KNOWN, MAX_AGE, Arc::clone(&clock));
        Self { fetch, policy, known, room: Semaphore::new(MAX_FETCHES), clock }
    }

    /// The client that the document at this address describes, fetched where it is not known or too old. Failures are not
    /// remembered. The error is a sentence for a person.
    pub(crate) async fn client(&self, id: &ClientIdUrl) -> Result<Arc<Client>, &'static str> {
        let now = self.clock.monotonic();
        let known = self.known.look_up(id.as_str(), |known| {
            let fresh = now < known.until;
            (fresh.then(|| Arc::clone(&known.client)), Keep::AsItWas)
        });
        if let Some(client) = known.flatten() {
            return Ok(client);
        }
        let _room = self.room.try_acquire().map_err(|_| BUSY)?;
        let mut request = FetchRequest::get(id.url().clone(), self.policy);
        (request.max_body, request.timeout) = (MAX_DOCUMENT, FETCH_TIME);
        let response = self.fetch.fetch(request).await.map_err(|error| {
            tracing::info!(client.id = id.as_str(), reason = error.code(), "cannot fetch a client's metadata document");
            FAILED
        })?;
        let client = read(id, &response).map_err(|reason| {
            tracing::info!(client.id = id.as_str(), reason, "cannot use a client's metadata document");
            FAILED
        })?;
        let client = Arc::new(client);
        let age = age_of(&response.headers);
        if !age.is_zero() {
            let known = Known { client: Arc::clone(&client), until: now.saturating_add(age) };
            // A full table lets its oldest go, so that there is always room.
            let _ = self.known.insert(id.as_str(), known, |_| true);
        }
        Ok(client)
    }
}

/// Reads what matters here. The document's own rules are those of open registration.
fn read(id: &ClientIdUrl, response: &FetchResponse) -> Result<Client, &'static str> {
    if response.status != StatusCode::OK {
        return Err("the status is not 200");
    }
    if !is_json(&response.headers) {
        return Err("the content type is not JSON");
    }
    let metadata = ClientIdMetadataDocument::parse(&response.body, id).map_err(|error| error.code())?.metadata;
    let told = |refusal: OAuthRefusal| refusal.description;
    let credential = match metadata.token_endpoint_auth_method.as_deref().unwrap_or("none") {
        "none" => Credential::None,
        Credential::PRIVATE_KEY_JWT => keys_of(&metadata).map_err(told)?,
        _ => return Err("token_endpoint_auth_method is neither none nor private_key_jwt"),
    };
    Ok(Client {
        name: name_of(&metadata).map_err(told)?,
        redirect_uris: redirect_uris_of(&metadata).map_err(told)?,
        credential,
        grant_types: grant_types_of(&metadata).map_err(told)?,
        scopes: None,
        may_introspect: false,
        is_document: true,
    })
}

/// Whether the content type is `application/json` or `application/<something>+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

/// How long the answer says that it counts (RFC 9111 section 5.2.2), within the bounds.
fn age_of(headers: &HeaderMap) -> Duration {
    let values = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<_> =
        values.flat_map(|value| value.split(',')).map(|part| part.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|directive| matches!(directive.as_str(), "no-store" | "no-cache")) {
        return Duration::ZERO;
    }
    let age = directives.iter().find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    age.map_or(DEFAULT_AGE, Duration::from_secs).min(MAX_AGE)
}
