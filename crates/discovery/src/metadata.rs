//! [`Discovery`]: finds metadata documents.

mod attempts;
mod endpoints;
mod error;
mod lookup;
mod resource_match;
mod resource_options;
mod search;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use portcullis_metadata::{
    AuthorizationServerMetadata, DocumentError, Issuer, ProtectedResourceMetadata,
    authorization_server_urls, protected_resource_urls,
};
use url::Url;

pub use self::{
    attempts::{Attempt, AttemptOutcome, Attempts},
    endpoints::{InsecureEndpoint, insecure_endpoints},
    error::DiscoveryError,
    lookup::{Lookup, LookupContent, LookupResponse},
    resource_match::ResourceMatch,
    resource_options::ResourceOptions,
    search::Search,
};
use crate::{
    fetch::{Fetch, FetchRequest, shown_url},
    url_policy::ChainPolicy,
};

/// Finds the metadata of protected resources (RFC 9728 section 5) and of authorization servers (RFC
/// 8414 section 3). It has no state and no cache.
///
/// It compares identifiers and rejects authorization servers with insecure endpoints. It does not
/// check which grants an authorization server supports.
#[derive(Clone)]
pub struct Discovery {
    fetch: Arc<dyn Fetch>,
    policy: ChainPolicy,
    timeout: Duration,
}

/// The metadata of a protected resource and its source.
#[derive(Clone, Debug)]
pub struct DiscoveredResource {
    /// The document. Its `resource` matches the requested URL and must be sent in token requests.
    pub metadata: ProtectedResourceMetadata,
    /// The source of the document.
    pub from: MetadataSource,
    /// How `resource` matches the requested URL. The caller decides whether to accept a broader
    /// resource.
    pub resource_match: ResourceMatch,
}

/// The source of a protected resource's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataSource {
    /// The `resource_metadata` URL of the challenge.
    Challenge(Url),
    /// A well-known URL of the resource.
    WellKnown(Url),
    /// The caller's configuration.
    Configured,
}

impl DiscoveredResource {
    /// Whether the document is at the root form of the well-known URL,
    /// `/.well-known/oauth-protected-resource` (RFC 9728 section 3.1). Only whoever controls the
    /// whole host can publish it. A document at another URL can be a tenant's: the path form exists
    /// for hosts that several parties share.
    pub fn is_of_whole_host(&self) -> bool {
        match &self.from {
            MetadataSource::Challenge(url) | MetadataSource::WellKnown(url) => {
                protected_resource_urls(self.metadata.resource.url()).last() == Some(url)
            }
            MetadataSource::Configured => false,
        }
    }
}

impl Discovery {
    /// Creates a discovery whose requests have this policy: the operator's
    /// ([`UrlPolicy::Operator`](crate::UrlPolicy::Operator)) for configured issuers, and
    /// [`ChainPolicy::started_at`] for a URL that a user entered.
    pub fn new(fetch: Arc<dyn Fetch>, policy: impl Into<ChainPolicy>) -> Self {
        Self {
            fetch,
            policy: policy.into(),
            timeout: FetchRequest::TIMEOUT,
        }
    }

    /// Creates a discovery with an [`HttpFetch`](crate::HttpFetch) of the default settings.
    ///
    /// # Errors
    /// As [`HttpFetch::new`](crate::HttpFetch::new).
    #[cfg(feature = "reqwest")]
    pub fn over_http(policy: impl Into<ChainPolicy>) -> Result<Self, crate::FetchError> {
        let fetch = crate::HttpFetch::new(crate::FetchSettings::default())?;
        Ok(Self::new(Arc::new(fetch), policy))
    }

    /// Sets the timeout of each request. Default: [`FetchRequest::TIMEOUT`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Finds the metadata of the resource at `requested`: at the challenge's URL, then at the
    /// well-known URLs with and without the path, then in the configured metadata of the options.
    ///
    /// The search continues if a response has a status other than 200 and 5xx, or is not JSON.
    ///
    /// # Errors
    /// Fails with [`DiscoveryError::NotFound`] if there is no metadata. A failed request, a 5xx
    /// status, a JSON document that is not metadata, and a `resource` that does not match
    /// `requested` end the search.
    pub async fn protected_resource(
        &self,
        requested: &Url,
        options: ResourceOptions<'_>,
    ) -> Result<DiscoveredResource, DiscoveryError> {
        let mut attempts = Attempts::default();
        let mut sources = Vec::with_capacity(3);
        if let Some(named) = options
            .challenge
            .and_then(|challenge| challenge.resource_metadata.as_deref())
        {
            match Url::parse(named) {
                Ok(url) => sources.push(MetadataSource::Challenge(url)),
                Err(_) => attempts.add(
                    "resource_metadata of the challenge".into(),
                    AttemptOutcome::NotAUrl,
                    None,
                ),
            }
        }
        sources.extend(
            protected_resource_urls(requested)
                .into_iter()
                .map(MetadataSource::WellKnown),
        );

        for from in sources {
            let (MetadataSource::Challenge(url) | MetadataSource::WellKnown(url)) = &from else {
                continue;
            };
            let lookup = self
                .look_up(url.clone(), false, ProtectedResourceMetadata::parse)
                .await;
            if let Some(metadata) = lookup.into_document(&mut attempts)? {
                return check_resource(requested, metadata, from);
            }
        }
        match options.configured {
            Some(metadata) => {
                check_resource(requested, metadata.clone(), MetadataSource::Configured)
            }
            None => Err(DiscoveryError::NotFound(attempts)),
        }
    }

    /// Finds the metadata of an authorization server: at the RFC 8414 URL, then at the OpenID
    /// Connect Discovery URLs with the issuer's path inserted and prepended.
    ///
    /// The search continues as in [`protected_resource`](Self::protected_resource).
    ///
    /// # Errors
    /// Fails with [`DiscoveryError::NotFound`] if there is no metadata, with
    /// [`DiscoveryError::IssuerMismatch`] if a document's issuer is not equal byte for byte (RFC
    /// 8414 section 3.3), and with [`DiscoveryError::InsecureEndpoint`] if an endpoint is insecure
    /// ([`insecure_endpoints`]). A failed request, a 5xx status and a malformed document end the
    /// search, too.
    pub async fn authorization_server(
        &self,
        issuer: &Issuer,
    ) -> Result<AuthorizationServerMetadata, DiscoveryError> {
        let mut attempts = Attempts::default();
        let mut search = self.search_authorization_server(issuer);
        while let Some(lookup) = search.next().await {
            if let Some(metadata) = lookup.into_document(&mut attempts)? {
                if metadata.issuer != *issuer {
                    return Err(DiscoveryError::IssuerMismatch {
                        requested: issuer.clone(),
                        found: metadata.issuer,
                    });
                }
                return self.check_endpoints(metadata);
            }
        }
        Err(DiscoveryError::NotFound(attempts))
    }

    /// Searches the metadata of an authorization server as
    /// [`authorization_server`](Self::authorization_server) does, and returns what each URL has.
    /// Neither the `issuer` nor the endpoints of a document are checked.
    pub fn search_authorization_server(&self, issuer: &Issuer) -> Search<'_> {
        Search::new(self, authorization_server_urls(issuer))
    }

    /// Requests the metadata of any authorization server at one URL. Neither its `issuer` nor its
    /// endpoints are checked.
    pub async fn look_up_authorization_server(
        &self,
        url: Url,
    ) -> Lookup<AuthorizationServerMetadata> {
        self.look_up(url, true, AuthorizationServerMetadata::parse)
            .await
    }

    /// Returns the metadata if all its endpoints are secure.
    fn check_endpoints(
        &self,
        metadata: AuthorizationServerMetadata,
    ) -> Result<AuthorizationServerMetadata, DiscoveryError> {
        match insecure_endpoints(&metadata, &self.policy)
            .into_iter()
            .next()
        {
            None => Ok(metadata),
            Some(InsecureEndpoint { member, url }) => {
                let url = shown_url(&url);
                Err(DiscoveryError::InsecureEndpoint {
                    issuer: metadata.issuer,
                    member,
                    url,
                })
            }
        }
    }

    async fn look_up<T>(
        &self,
        url: Url,
        is_last: bool,
        parse: fn(&[u8]) -> Result<T, DocumentError>,
    ) -> Lookup<T> {
        let mut request = FetchRequest::get(url.clone(), self.policy.of(&url));
        request.timeout = self.timeout;
        let result = self
            .fetch
            .fetch(request)
            .await
            .map(|response| LookupResponse::new(response, parse));
        Lookup {
            url,
            is_last,
            result,
        }
    }
}

/// Checks that the `resource` of the metadata matches the requested URL.
fn check_resource(
    requested: &Url,
    metadata: ProtectedResourceMetadata,
    from: MetadataSource,
) -> Result<DiscoveredResource, DiscoveryError> {
    match ResourceMatch::of(&metadata.resource, requested) {
        Some(resource_match) => Ok(DiscoveredResource {
            metadata,
            from,
            resource_match,
        }),
        None => {
            let found = shown_url(metadata.resource.url());
            Err(DiscoveryError::ResourceMismatch {
                requested: shown_url(requested),
                found,
            })
        }
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
