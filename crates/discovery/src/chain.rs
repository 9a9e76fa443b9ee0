use std::sync::Arc;

use http::StatusCode;
use portcullis_metadata::{
    AuthorizationServerMetadata, BearerChallenge, DocumentError, Issuer, ProtectedResourceMetadata,
    authorization_server_urls, protected_resource_urls,
};
use url::Url;

use crate::{ChainPolicy, Fetch, FetchRequest, without_query};

mod endpoints;
mod error;
mod resource_match;

pub use endpoints::{InsecureEndpoint, insecure_endpoints};
pub use error::{Attempt, AttemptOutcome, Attempts, DiscoveryError};
pub use resource_match::ResourceMatch;

/// The chain from a resource's URL to the metadata of the servers that issue tokens for it (RFC 9728 section 5,
/// RFC 8414 section 3). It holds no state and caches nothing.
///
/// It reads documents, compares identifiers, and refuses authorization servers with insecure endpoints; it does not
/// check whether an authorization server supports a certain grant.
#[derive(Clone)]
pub struct Discovery {
    fetch: Arc<dyn Fetch>,
    policy: ChainPolicy,
}

/// A protected resource's metadata, and where it came from.
#[derive(Clone, Debug)]
pub struct DiscoveredResource {
    /// The document. Its `resource` fits what was asked for, and is the value to send in token requests.
    pub metadata: ProtectedResourceMetadata,
    /// Where it came from.
    pub from: MetadataSource,
    /// How its `resource` relates to the URL that was asked for. Whether a broader one is acceptable is the caller's
    /// decision.
    pub resource_match: ResourceMatch,
}

/// Where a protected resource's metadata came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataSource {
    /// The URL that the challenge named in `resource_metadata`.
    Challenge(Url),
    /// A well-known URL of the resource.
    WellKnown(Url),
    /// The values that the caller had configured.
    Configured,
}

impl Discovery {
    /// A chain that fetches each URL under the policy for it: one [`UrlPolicy`](crate::UrlPolicy) for issuers that stand in
    /// a configuration, [`ChainPolicy::started_at`] for what begins with a URL that a user typed.
    pub fn new(fetch: Arc<dyn Fetch>, policy: impl Into<ChainPolicy>) -> Self {
        Self { fetch, policy: policy.into() }
    }

    /// Finds the metadata of the resource at `asked`: at the URL that the challenge names, then at the well-known
    /// URLs with and without the path, then in `configured`.
    ///
    /// The next place is tried when one answers with anything but 200 and 5xx, or with something that is not JSON.
    ///
    /// # Errors
    /// [`DiscoveryError::NotFound`] when no place has it; any other variant ends the search where it happened: a
    /// failed fetch, a 5xx, a JSON document that is no metadata, or a `resource` that does not fit `asked`.
    pub async fn protected_resource(
        &self,
        asked: &Url,
        challenge: Option<&BearerChallenge>,
        configured: Option<&ProtectedResourceMetadata>,
    ) -> Result<DiscoveredResource, DiscoveryError> {
        let mut attempts = Attempts::default();
        let mut places = Vec::with_capacity(3);
        if let Some(named) = challenge.and_then(|challenge| challenge.resource_metadata.as_deref()) {
            match Url::parse(named) {
                Ok(url) => places.push(MetadataSource::Challenge(url)),
                Err(_) => attempts.add("resource_metadata of the challenge".into(), AttemptOutcome::NotAUrl),
            }
        }
        places.extend(protected_resource_urls(asked).into_iter().map(MetadataSource::WellKnown));

        for from in places {
            let (MetadataSource::Challenge(url) | MetadataSource::WellKnown(url)) = &from else { continue };
            if let Some(metadata) = self.look(url, ProtectedResourceMetadata::parse, &mut attempts).await? {
                return fitting(asked, metadata, from);
            }
        }
        match configured {
            Some(metadata) => fitting(asked, metadata.clone(), MetadataSource::Configured),
            None => Err(DiscoveryError::NotFound(attempts)),
        }
    }

    /// Finds an authorization server's metadata: RFC 8414 with the issuer's path inserted, OpenID Connect Discovery
    /// the same way, then with the path in front.
    ///
    /// The next place is tried as for [`protected_resource`](Self::protected_resource).
    ///
    /// # Errors
    /// [`DiscoveryError::NotFound`] when no place has it; [`DiscoveryError::IssuerMismatch`], finally, when a document
    /// names another issuer than the one asked for, compared byte for byte (RFC 8414 section 3.3);
    /// [`DiscoveryError::InsecureEndpoint`], finally, when it names an endpoint that is neither `https` nor `http` to
    /// loopback where the policy allows that ([`insecure_endpoints`]).
    pub async fn authorization_server(&self, issuer: &Issuer) -> Result<AuthorizationServerMetadata, DiscoveryError> {
        let mut attempts = Attempts::default();
        for url in authorization_server_urls(issuer) {
            if let Some(metadata) = self.look(&url, AuthorizationServerMetadata::parse, &mut attempts).await? {
                if metadata.issuer != *issuer {
                    return Err(DiscoveryError::IssuerMismatch { asked: issuer.clone(), found: metadata.issuer });
                }
                return self.secure(metadata);
            }
        }
        Err(DiscoveryError::NotFound(attempts))
    }

    /// The metadata, when all its endpoints are secure.
    fn secure(&self, metadata: AuthorizationServerMetadata) -> Result<AuthorizationServerMetadata, DiscoveryError> {
        match insecure_endpoints(&metadata, &self.policy).into_iter().next() {
            None => Ok(metadata),
            Some(InsecureEndpoint { member, url }) => {
                let url = without_query(&url);
                Err(DiscoveryError::InsecureEndpoint { issuer: metadata.issuer, member, url })
            }
        }
    }

    /// One place: its document, or nothing with the outcome noted, or the error that ends the search.
    async fn look<T>(
        &self,
        url: &Url,
        parse: fn(&[u8]) -> Result<T, DocumentError>,
        attempts: &mut Attempts,
    ) -> Result<Option<T>, DiscoveryError> {
        let answer = match self.fetch.fetch(FetchRequest::get(url.clone(), self.policy.of(url))).await {
            Ok(answer) => answer,
            Err(error) => return Err(DiscoveryError::Fetch { url: without_query(url), error }),
        };
        if answer.status.is_server_error() {
            return Err(DiscoveryError::ServerError { url: without_query(url), status: answer.status });
        }
        let outcome = if answer.status == StatusCode::OK {
            match parse(&answer.body) {
                Ok(document) => return Ok(Some(document)),
                Err(DocumentError::NotJson) => AttemptOutcome::NotJson,
                Err(error) => return Err(DiscoveryError::Document { url: without_query(url), error }),
            }
        } else {
            AttemptOutcome::Status(answer.status)
        };
        attempts.add(without_query(url), outcome);
        Ok(None)
    }
}

fn fitting(
    asked: &Url,
    metadata: ProtectedResourceMetadata,
    from: MetadataSource,
) -> Result<DiscoveredResource, DiscoveryError> {
    match ResourceMatch::of(&metadata.resource, asked) {
        Some(resource_match) => Ok(DiscoveredResource { metadata, from, resource_match }),
        None => {
            let found = without_query(metadata.resource.url());
            Err(DiscoveryError::ResourceMismatch { asked: without_query(asked), found })
        }
    }
}

impl std::fmt::Debug for Discovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discovery").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
