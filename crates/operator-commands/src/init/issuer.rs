//! Finds the exact issuer from a URL that a person enters.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_client::error_chain;
use portcullis_config::shown_url;
use portcullis_discovery::{
    Discovery, Fetch as _, FetchRequest, FetchSettings, HttpFetch, LookupContent, Product,
    UrlPolicy,
};
use portcullis_doctor::algorithms_to_configure;
use portcullis_jose::Algorithm;
use portcullis_metadata::{
    AuthorizationServerMetadata, Issuer, JwkSet, authorization_server_urls,
    syntax::is_https_or_loopback_http,
};
use tokio::time::timeout;
use url::{Position, Url};

use crate::online_check::REQUEST_TIMEOUT;

/// The time limit of the whole search.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most documents that are fetched.
const MAX_DOCUMENTS: usize = 12;
/// What the paths of metadata contain (RFC 8615).
const WELL_KNOWN: &str = "/.well-known/";

/// What is at a URL that a person entered.
#[derive(Debug)]
pub(super) enum Found {
    /// The issuer of that URL, exactly as in its metadata.
    Issuer {
        issuer: Issuer,
        /// The algorithms of its keys. Empty if the default fits.
        algorithms: Vec<Algorithm>,
        /// Whether clients can introduce themselves there, by registration or by a document.
        registers_clients: bool,
    },
    /// The metadata is of an issuer with another host or path, or without metadata of its own. A
    /// person decides whether it is meant.
    Other { issuer: Issuer, reason: String },
}

/// Returns the issuer as written, without requests. Fails with the reason if it is not an issuer
/// identifier, or the URL of metadata.
pub(super) fn as_written(text: &str) -> Result<Issuer, String> {
    let issuer = Issuer::parse(text)
        .map_err(|error| format!("{error}; write it as \"https://auth.example.com\""))?;
    if text.contains(WELL_KNOWN) {
        return Err(
            "this is the URL of the metadata; give the issuer, which is in its member `issuer`"
                .to_owned(),
        );
    }
    Ok(issuer)
}

/// Finds the issuer of a URL: the issuer itself, with or without the slash at the end, or the URL
/// of its metadata.
///
/// The metadata is fetched, and that of the issuer in it must name the same issuer (RFC 8414
/// section 3.3). If there is no metadata for the path, its parents are searched. Fails with the
/// reason if the text is not a URL, or there is no metadata.
pub(super) async fn find(text: &str, product: Product) -> Result<Found, String> {
    let entered = parse(text)?;
    let fetch = HttpFetch::new(FetchSettings::of(product)).map_err(|error| error.to_string())?;
    let fetch = Arc::new(fetch);
    timeout(TIMEOUT, search(&entered, &fetch))
        .await
        .unwrap_or_else(|_| Err(format!("{entered} does not answer in time")))
}

async fn search(entered: &Url, fetch: &Arc<HttpFetch>) -> Result<Found, String> {
    let documents = documents(entered);
    let discovery = Discovery::new(Arc::clone(fetch) as _, UrlPolicy::Operator);
    let at_one_url = discovery.clone().timeout(REQUEST_TIMEOUT);
    for url in &documents {
        let Some(metadata) = metadata(url, &at_one_url).await? else {
            continue;
        };
        let issuer = metadata.issuer;
        if let Some(reason) = difference(entered, &issuer, url) {
            return Ok(Found::Other { issuer, reason });
        }
        let metadata = match discovery.authorization_server(&issuer).await {
            Ok(metadata) => metadata,
            Err(error) => {
                let reason = format!(
                    "the metadata at {url} is of {issuer}, which cannot be used: {}",
                    error_chain(&error)
                );
                return Ok(Found::Other { issuer, reason });
            }
        };
        let algorithms = match &metadata.jwks_uri {
            Some(uri) => algorithms(uri, fetch).await,
            None => Vec::new(),
        };
        let registers_clients = metadata.registration_endpoint.is_some()
            || metadata.client_id_metadata_document_supported;
        return Ok(Found::Issuer {
            issuer,
            algorithms,
            registers_clients,
        });
    }
    let places = documents
        .iter()
        .map(Url::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    Err(format!(
        "there is no metadata of an authorization server at {places}"
    ))
}

/// The URL without query and fragment. A missing scheme is added.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    let has_scheme = text.contains("://");
    let text = if has_scheme {
        text.to_owned()
    } else {
        format!("https://{text}")
    };
    let shown = shown_url(&text);
    let mut url = Url::parse(&text).map_err(|error| format!("{shown:?} is not a URL: {error}"))?;
    if !is_https_or_loopback_http(&url) {
        return Err(format!("{shown:?} is neither https nor http on loopback"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL contains a user name or password; remove it".to_owned());
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// The places of the metadata, in the order of the search: the entered URL if it is one, then those
/// for its path and for the parents of that.
fn documents(entered: &Url) -> Vec<Url> {
    let mut documents: Vec<Url> = Vec::new();
    documents.extend(entered.path().contains(WELL_KNOWN).then(|| entered.clone()));
    let path = issuer_path(entered.path());
    let mut path = path.trim_end_matches('/');
    loop {
        let issuer = Issuer::parse(&format!("{}{path}", &entered[..Position::BeforePath]));
        for url in issuer.iter().flat_map(authorization_server_urls) {
            if !documents.contains(&url) {
                documents.push(url);
            }
        }
        match path.rfind('/') {
            Some(end) => path = path.get(..end).unwrap_or_default(),
            None => break,
        }
    }
    documents.truncate(MAX_DOCUMENTS);
    documents
}

/// The path of the issuer in the path of its metadata: before or after the well-known part.
fn issuer_path(path: &str) -> String {
    let Some((before, name)) = path.split_once(WELL_KNOWN) else {
        return path.to_owned();
    };
    let after = name
        .find('/')
        .and_then(|start| name.get(start..))
        .unwrap_or_default();
    format!("{before}{after}")
}

/// Why this is not the issuer that the person means, if so. A slash at the end makes no difference.
fn difference(entered: &Url, issuer: &Issuer, document: &Url) -> Option<String> {
    if entered.origin() != issuer.url().origin() {
        return Some(format!(
            "the metadata at {document} is of {issuer}, which has another host"
        ));
    }
    let meant = issuer_path(entered.path());
    let is_same = meant.trim_end_matches('/') == issuer.url().path().trim_end_matches('/');
    (!is_same && entered != document)
        .then(|| format!("the metadata at {document} is of {issuer}, which has another path"))
}

/// The metadata at a URL. `None` if there is none: some servers have a page for every path.
async fn metadata(
    url: &Url,
    discovery: &Discovery,
) -> Result<Option<Box<AuthorizationServerMetadata>>, String> {
    let found = discovery
        .look_up_authorization_server(url.clone())
        .await
        .result;
    let found = found.map_err(|error| format!("cannot fetch {url}: {}", error_chain(&error)))?;
    match found.content {
        LookupContent::Document(metadata) => Ok(Some(metadata)),
        LookupContent::ServerError => Err(format!("{url} answers {}", found.response.status)),
        _ => Ok(None),
    }
}

/// The algorithms to configure. Empty also if there are no usable keys, which the tests report.
async fn algorithms(keys: &Url, fetch: &HttpFetch) -> Vec<Algorithm> {
    let mut request = FetchRequest::get(keys.clone(), UrlPolicy::Operator);
    request.timeout = REQUEST_TIMEOUT;
    let response = fetch
        .fetch(request)
        .await
        .ok()
        .filter(|response| response.status == StatusCode::OK);
    let keys = response.and_then(|response| JwkSet::parse(&response.body).ok());
    keys.map(|keys| algorithms_to_configure(&keys))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn documents_are_those_of_the_path_and_its_parents() {
        let documents = documents(&url("https://a.example/realms/prod/"));
        let paths: Vec<&str> = documents.iter().map(Url::path).collect();
        assert_eq!(
            paths[0],
            "/.well-known/oauth-authorization-server/realms/prod"
        );
        assert_eq!(paths[2], "/realms/prod/.well-known/openid-configuration");
        assert_eq!(paths.last(), Some(&"/.well-known/openid-configuration"));
        assert_eq!(paths.len(), 8);
        assert!(
            super::documents(&url("https://a.example/1/2/3/4/5/6/7/8/9")).len() <= MAX_DOCUMENTS
        );
    }

    #[test]
    fn the_url_of_metadata_is_the_first_document() {
        for (entered, path) in [
            ("https://a.example/.well-known/openid-configuration", ""),
            (
                "https://a.example/.well-known/oauth-authorization-server/realms/prod",
                "/realms/prod",
            ),
            (
                "https://a.example/realms/prod/.well-known/openid-configuration",
                "/realms/prod",
            ),
            ("https://a.example/realms/prod", "/realms/prod"),
        ] {
            assert_eq!(issuer_path(url(entered).path()), path);
            assert_eq!(
                documents(&url(entered))[0] == url(entered),
                entered.contains(WELL_KNOWN),
                "{entered}"
            );
        }
    }

    /// A document cannot name an issuer of another host, and a parent of the path is only proposed.
    #[test]
    fn other_issuers_are_not_taken() {
        let document = |entered: &Url| documents(entered)[0].clone();
        for (entered, issuer, is_same) in [
            ("https://a.example", "https://a.example/", true),
            ("https://a.example/x/", "https://a.example/x", true),
            (
                "https://a.example/.well-known/openid-configuration",
                "https://a.example",
                true,
            ),
            ("https://a.example/x", "https://b.example/x", false),
            (
                "https://a.example/.well-known/openid-configuration",
                "https://b.example",
                false,
            ),
            ("https://a.example/x", "https://a.example", false),
            ("https://a.example/x", "https://a.example:8443/x", false),
        ] {
            let entered = url(entered);
            let issuer = Issuer::parse(issuer).unwrap();
            assert_eq!(
                difference(&entered, &issuer, &document(&entered)).is_none(),
                is_same,
                "{entered} {issuer:?}"
            );
        }
    }

    #[test]
    fn urls_are_completed_and_restricted() {
        assert_eq!(
            parse("a.example/x?y#z").unwrap().as_str(),
            "https://a.example/x"
        );
        for invalid in [
            "http://a.example",
            "https://u:p@a.example",
            "https://",
            "ftp://a.example",
            "",
        ] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
        for secret in ["http://me:hunter2@a.example", "https://me:hunter2@:x"] {
            let reason = parse(secret).unwrap_err();
            assert!(!reason.contains("hunter2"), "{reason}");
        }
        assert!(as_written("https://a.example/.well-known/openid-configuration").is_err());
        assert!(as_written("https://a.example/?x").is_err());
        assert_eq!(
            as_written("https://a.example/").unwrap().as_str(),
            "https://a.example/"
        );
    }
}
