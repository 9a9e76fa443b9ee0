//! The authorization servers that an upstream with authorization of its own names.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{
    Fetch as _, FetchRequest, FetchResponse, FetchSettings, HttpFetch, Product, UrlPolicy,
};
use portcullis_metadata::{
    BearerChallenge, Issuer, ProtectedResourceMetadata, parse_challenges, protected_resource_urls,
};
use url::Url;

use super::{
    REQUEST_TIMEOUT, mcp,
    upstream_connection::{Upstream, UpstreamRequest},
};
use portcullis_config::plan::{Plan, UpstreamPlan};

/// The most issuers that are returned.
const MAX_ISSUERS: usize = 8;
/// The maximum length of an issuer that is proposed.
const MAX_LENGTH: usize = 200;

/// The issuers in the protected resource metadata of the first upstream, if it answers 401 to a
/// request without a token (RFC 9728 section 5). They are proposals for a person: neither the
/// issuers nor the `resource` of the metadata are checked.
pub(crate) async fn upstream_issuers(plan: &Plan, product: Product) -> Vec<Issuer> {
    let mut issuers = find(plan, product).await.unwrap_or_default();
    issuers.retain(|issuer| issuer.as_str().len() <= MAX_LENGTH);
    issuers.truncate(MAX_ISSUERS);
    issuers
}

async fn find(plan: &Plan, product: Product) -> Option<Vec<Issuer>> {
    let resource = plan.resources.first()?;
    let UpstreamPlan::Http(settings) = &resource.upstream else {
        return None;
    };
    let upstream = Upstream::new(settings)?;
    let url = upstream.url();
    let response = upstream
        .send(mcp::first_message(
            url.clone(),
            resource.revisions,
            product.version,
        ))
        .await
        .ok()?;
    if response.status != StatusCode::UNAUTHORIZED {
        return None;
    }
    for place in challenge_url(&response.headers)
        .into_iter()
        .chain(protected_resource_urls(url))
    {
        let response = if place.origin() == url.origin() {
            let accept = (header::ACCEPT, HeaderValue::from_static("application/json"));
            let request = UpstreamRequest {
                method: Method::GET,
                url: place,
                headers: vec![accept],
                body: Bytes::new(),
            };
            upstream.send(request).await.ok()
        } else {
            fetch(place, product).await
        };
        let document = response.filter(|response| response.status == StatusCode::OK);
        if let Some(metadata) =
            document.and_then(|found| ProtectedResourceMetadata::parse(&found.body).ok())
        {
            return Some(metadata.authorization_servers);
        }
    }
    None
}

fn challenge_url(headers: &HeaderMap) -> Option<Url> {
    let values = headers
        .get_all(header::WWW_AUTHENTICATE)
        .iter()
        .map(HeaderValue::as_bytes);
    let bearer = BearerChallenge::from_challenges(&parse_challenges(values).ok()?)?;
    Url::parse(bearer.resource_metadata.as_deref()?).ok()
}

/// Fetches a document of another server that the upstream names. Only public addresses are allowed.
async fn fetch(url: Url, product: Product) -> Option<FetchResponse> {
    let policy = UrlPolicy::Peer {
        loopback_http: false,
        private_addresses: false,
    };
    let mut request = FetchRequest::get(url, policy);
    request.timeout = REQUEST_TIMEOUT;
    HttpFetch::new(FetchSettings::of(product))
        .ok()?
        .fetch(request)
        .await
        .ok()
}
