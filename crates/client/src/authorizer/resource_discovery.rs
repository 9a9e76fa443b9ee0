//! Discovers the authorization server of a resource, and selects the parameters of the grant.

use std::sync::Arc;

use portcullis_discovery::{ChainPolicy, DiscoveredResource, Discovery, DiscoveryError, MetadataSource, ResourceMatch};
use portcullis_metadata::{AuthorizationServerMetadata, Issuer, ProtectedResourceMetadata, ResourceUri, Scopes};

use super::{Authorizer, GrantContext, selection};
use crate::{
    ClientError, StartUrl, authorization::code_flow::CodeFlow, provider::RequestProfile,
    resource_challenge::ResourceChallenge, server::Server, token::dpop::DpopBinding,
};

impl Authorizer {
    /// Discovers the authorization server of a resource, and selects the parameters of the grant.
    ///
    /// # Errors
    /// When the metadata cannot be fetched or is not valid, when the settings exclude the authorization server, and when it
    /// does not support DPoP although the resource requires it.
    pub(super) async fn discover(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
    ) -> Result<GrantContext, ClientError> {
        let DiscoveredResource { metadata: protected, from, resource_match } = self.resource(start, challenge).await?;
        let is_broader = resource_match == ResourceMatch::PathPrefix && from != MetadataSource::Configured;
        let ProtectedResourceMetadata {
            resource,
            authorization_servers,
            scopes_supported,
            dpop_bound_access_tokens_required,
            ..
        } = protected;
        let issuer = self.select_server(&authorization_servers)?;
        let metadata = self.server(start, issuer).await?;
        let policy = self.policy(start);
        let server = Server::from_metadata(&metadata, policy.clone())?;
        let must_bind = challenge.requires_dpop() || dpop_bound_access_tokens_required == Some(true);
        let binding = new_binding(must_bind, challenge, &server)?;
        let scopes = self.scopes(challenge, &scopes_supported, &server);
        let registered = selection::scopes_to_register(&scopes, &scopes_supported, &server.scopes_supported);
        let profile = RequestProfile::new(&self.settings.provider, &metadata, &resource);
        let is_step_up = challenge.is_step_up();
        Ok(GrantContext { resource, is_broader, metadata, policy, scopes, registered, is_step_up, binding, profile })
    }

    /// The scopes to request: those of the settings or [`selection::scopes_to_request`], and the additional ones of a
    /// step-up, unless the settings limit them.
    fn scopes(&self, challenge: &ResourceChallenge, supported: &[String], server: &Server) -> Scopes {
        if let Some(limit) = self.scope_limit() {
            return limit.clone();
        }
        let selected = match &self.settings.scopes {
            Some(scopes) => selection::with_offline_access(scopes.clone(), &server.scopes_supported),
            None => {
                let challenged = challenge.scopes().map(|scopes| scopes.in_listed_form(supported));
                selection::scopes_to_request(challenged.as_ref(), supported, &server.scopes_supported)
            }
        };
        selected.union(&challenge.additional_scopes().in_listed_form(supported))
    }

    /// Whether the resource still lists this authorization server.
    pub(crate) async fn is_listed(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
        issuer: &Issuer,
    ) -> Result<bool, ClientError> {
        Ok(self.resource(start, challenge).await?.metadata.authorization_servers.contains(issuer))
    }

    /// The authorization servers that the resource lists now.
    pub(crate) async fn listed_issuers(&self, start: &StartUrl) -> Result<Vec<Issuer>, ClientError> {
        let challenge = self.probe(start).await?;
        Ok(self.resource(start, &challenge).await?.metadata.authorization_servers)
    }

    /// The metadata of the resource: configured, or fetched.
    async fn resource(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
    ) -> Result<DiscoveredResource, ClientError> {
        let configured = self.settings.resource_metadata.as_ref();
        let found = self.discovery(start).protected_resource(start.url(), challenge.parameters(), configured).await;
        match found {
            Err(error @ DiscoveryError::NotFound(_)) if self.settings.revision_2025_03_26 => {
                origin_as_server(start).ok_or(ClientError::Discovery(error))
            }
            found => found.map_err(ClientError::Discovery),
        }
    }

    /// The metadata of an authorization server.
    pub(super) async fn server(
        &self,
        start: &StartUrl,
        issuer: &Issuer,
    ) -> Result<AuthorizationServerMetadata, ClientError> {
        match self.discovery(start).authorization_server(issuer).await {
            Ok(metadata) => Ok(metadata),
            Err(DiscoveryError::NotFound(_))
                if self.settings.revision_2025_03_26 && issuer.url().origin() == start.url().origin() =>
            {
                Ok(CodeFlow::default_metadata(issuer.clone()))
            }
            Err(error) => Err(ClientError::Discovery(error)),
        }
    }

    /// Selects one of the authorization servers that the resource lists.
    fn select_server<'a>(&self, listed: &'a [Issuer]) -> Result<&'a Issuer, ClientError> {
        let bound: Vec<_> = self.settings.credentials.iter().map(|held| held.issuer.clone()).collect();
        let wanted = self.settings.authorization_server.as_ref();
        selection::select_server(listed, wanted, &bound, |issuer| self.settings.store.knows(issuer))
    }

    fn discovery(&self, start: &StartUrl) -> Discovery {
        Discovery::new(self.fetch.clone(), self.policy(start))
    }

    /// Which URLs of a sign-in at `start` may be fetched.
    pub(super) fn policy(&self, start: &StartUrl) -> ChainPolicy {
        ChainPolicy::started_at(start.url(), self.settings.private_addresses)
    }
}

/// Creates a key to bind the token to, if the resource requires that, or accepts it and the authorization server supports
/// it.
///
/// # Errors
/// [`ClientError::DpopNotSupported`] when the token must be bound and the authorization server does not support it.
fn new_binding(
    must_bind: bool,
    challenge: &ResourceChallenge,
    server: &Server,
) -> Result<Option<Arc<DpopBinding>>, ClientError> {
    if must_bind && !server.binds_tokens {
        return Err(ClientError::DpopNotSupported { issuer: server.issuer.clone() });
    }
    let binds = must_bind || (challenge.accepts_dpop() && server.binds_tokens);
    if binds { Ok(Some(Arc::new(DpopBinding::generate()?))) } else { Ok(None) }
}

/// The default of the 2025-03-26 revision: the resource's origin is its authorization server.
fn origin_as_server(start: &StartUrl) -> Option<DiscoveredResource> {
    let issuer = Issuer::parse(&start.url().origin().ascii_serialization()).ok()?;
    let resource = ResourceUri::parse(start.url().as_str()).ok()?;
    Some(DiscoveredResource {
        metadata: ProtectedResourceMetadata::new(resource, vec![issuer]),
        from: MetadataSource::Configured,
        resource_match: ResourceMatch::Same,
    })
}
