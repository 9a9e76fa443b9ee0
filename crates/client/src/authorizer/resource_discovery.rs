//! From the URL of a resource to its authorization server, and the parameters of the grant that
//! follow from both.

use std::sync::Arc;

use portcullis_discovery::{
    ChainPolicy, DiscoveredResource, Discovery, DiscoveryError, MetadataSource, ResourceMatch,
    ResourceOptions,
};
use portcullis_metadata::{
    AuthorizationServerMetadata, Issuer, ProtectedResourceMetadata, ResourceUri, Scopes,
};

use super::{
    Authorizer, GrantContext, broader_resource::Publisher, client_issuer::other_server, selection,
};
use crate::{
    ClientError, StartUrl, authorization::code_flow::CodeFlow, provider::RequestProfile,
    resource_challenge::ResourceChallenge, scope_limit::MAX_SCOPES, server::Server,
    token::dpop::DpopBinding,
};

/// The most authorization servers that the metadata of a resource may list.
const MAX_ISSUERS: usize = 32;

impl Authorizer {
    /// Discovers the authorization server of a resource, and selects the parameters of the grant.
    /// Fails with [`ClientError::Discovery`] when the metadata of the resource or of the server
    /// cannot be fetched or is not valid, [`ClientError::NoAuthorizationServer`] and
    /// [`ClientError::AuthorizationServerNotListed`] when the resource lists no server or the
    /// settings exclude those that it lists, [`ClientError::UnsupportedServer`] when the server has
    /// no token endpoint, and those of [`new_binding`].
    pub(super) async fn discover(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
    ) -> Result<GrantContext, ClientError> {
        let found = self.fetch_resource_metadata(start, challenge).await?;
        let issuer = self.select_server(start, &found.metadata.authorization_servers)?;
        let metadata = self.fetch_server_metadata(start, issuer).await?;
        self.grant_context(start, challenge, found, metadata)
    }

    /// Whether the resource still lists this authorization server. Fails with
    /// [`ClientError::Discovery`] when the resource's metadata cannot be fetched or is not valid.
    pub(crate) async fn is_listed(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
        issuer: &Issuer,
    ) -> Result<bool, ClientError> {
        Ok(self
            .fetch_resource_metadata(start, challenge)
            .await?
            .metadata
            .authorization_servers
            .contains(issuer))
    }

    /// The authorization servers that the resource lists now. Fails when the resource cannot be
    /// requested without a token, and as [`is_listed`](Self::is_listed).
    pub(crate) async fn listed_issuers(
        &self,
        start: &StartUrl,
    ) -> Result<Vec<Issuer>, ClientError> {
        let challenge = self.probe(start).await?;
        Ok(self
            .fetch_resource_metadata(start, &challenge)
            .await?
            .metadata
            .authorization_servers)
    }

    /// Fetches the metadata of the resource. If there is none, it is that of the settings, or with
    /// the revision 2025-03-26 the resource's origin. Fails with [`ClientError::Discovery`] when
    /// there is none, it is not valid, or it cannot be fetched; [`ClientError::MetadataTooLong`].
    async fn fetch_resource_metadata(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
    ) -> Result<DiscoveredResource, ClientError> {
        let configured = self.settings.resource_metadata.as_ref();
        let options = ResourceOptions::default()
            .challenge(challenge.parameters())
            .configured(configured);
        let found = self
            .discovery(start)
            .protected_resource(start.url(), options)
            .await;
        let found = match found {
            Err(error @ DiscoveryError::NotFound(_)) if self.settings.revision_2025_03_26 => {
                origin_as_server(start).ok_or(ClientError::Discovery(error))?
            }
            found => found.map_err(ClientError::Discovery)?,
        };
        check_length(
            "authorization_servers",
            found.metadata.authorization_servers.len(),
            MAX_ISSUERS,
        )?;
        check_length(
            "scopes_supported",
            found.metadata.scopes_supported.len(),
            MAX_SCOPES,
        )?;
        Ok(found)
    }

    /// Selects one of the authorization servers that the resource lists. The client of the settings
    /// stays at the server at which it was used first. Fails as [`selection::select_server`] does,
    /// and [`ClientError::ClientOfOtherServer`].
    fn select_server<'a>(
        &self,
        start: &StartUrl,
        listed: &'a [Issuer],
    ) -> Result<&'a Issuer, ClientError> {
        let used_first = self.client_issuer(start)?;
        let bound: Vec<&Issuer> = self
            .settings
            .credentials
            .iter()
            .map(|held| &held.issuer)
            .chain(&used_first)
            .collect();
        let wanted = self.settings.authorization_server.as_ref();
        let selected = selection::select_server(listed, wanted, &bound, |all| {
            self.settings.store.first_known(all)
        });
        match (
            &selected,
            &self.settings.client,
            &used_first,
            listed.first(),
        ) {
            (
                Err(ClientError::AuthorizationServerNotListed { issuer }),
                Some(client),
                Some(known),
                Some(named),
            ) if issuer == known => Err(other_server(client, known, named)),
            _ => selected,
        }
    }

    /// Fetches the metadata of an authorization server. With the revision 2025-03-26, a server at
    /// the resource's origin needs none and has the default endpoints. Fails with
    /// [`ClientError::Discovery`] when there is none, it is not valid, or it cannot be fetched;
    /// [`ClientError::MetadataTooLong`].
    pub(super) async fn fetch_server_metadata(
        &self,
        start: &StartUrl,
        issuer: &Issuer,
    ) -> Result<AuthorizationServerMetadata, ClientError> {
        match self.discovery(start).authorization_server(issuer).await {
            Ok(metadata) => {
                check_length(
                    "scopes_supported",
                    metadata.scopes_supported.as_ref().map_or(0, Vec::len),
                    MAX_SCOPES,
                )?;
                Ok(metadata)
            }
            Err(DiscoveryError::NotFound(_))
                if self.settings.revision_2025_03_26
                    && issuer.url().origin() == start.url().origin() =>
            {
                Ok(CodeFlow::default_metadata(issuer.clone()))
            }
            Err(error) => Err(ClientError::Discovery(error)),
        }
    }

    /// Selects the scopes, the binding and the provider's profile. Fetches nothing. Fails with
    /// [`ClientError::UnsupportedServer`] when the server has no token endpoint, and those of
    /// [`new_binding`].
    fn grant_context(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
        found: DiscoveredResource,
        metadata: AuthorizationServerMetadata,
    ) -> Result<GrantContext, ClientError> {
        let broader_resource_of = publisher_of_broader(&found);
        let ProtectedResourceMetadata {
            resource,
            scopes_supported,
            dpop_bound_access_tokens_required,
            ..
        } = found.metadata;
        let policy = self.policy(start);
        let server = Server::from_metadata(&metadata, policy.clone())?;
        let must_bind =
            challenge.requires_dpop() || dpop_bound_access_tokens_required == Some(true);
        let binding = new_binding(must_bind, challenge.accepts_dpop(), &server)?;
        let scopes = self.scopes(challenge, &scopes_supported, &server);
        let registered =
            selection::scopes_to_register(&scopes, &scopes_supported, &server.scopes_supported);
        let profile = RequestProfile::new(&self.settings.provider, &metadata, &resource);
        let is_step_up = challenge.is_step_up();
        Ok(GrantContext {
            resource,
            broader_resource_of,
            metadata,
            policy,
            scopes,
            registered,
            is_step_up,
            binding,
            profile,
        })
    }

    /// The scopes to request: those of the settings or [`selection::scopes_to_request`], and the
    /// additional ones of a step-up.
    ///
    /// If the settings limit the scopes, they are exactly those of the settings: neither the
    /// challenge nor a step-up adds one, and `offline_access` is not added either.
    fn scopes(
        &self,
        challenge: &ResourceChallenge,
        supported: &[String],
        server: &Server,
    ) -> Scopes {
        if let Some(limit) = self.scope_limit() {
            return limit.clone();
        }
        let selected = match &self.settings.scopes {
            Some(scopes) => {
                selection::with_offline_access(scopes.clone(), &server.scopes_supported)
            }
            None => {
                let challenged = challenge
                    .scopes()
                    .map(|scopes| scopes.in_listed_form(supported));
                selection::scopes_to_request(
                    challenged.as_ref(),
                    supported,
                    &server.scopes_supported,
                )
            }
        };
        selected.union(&challenge.additional_scopes().in_listed_form(supported))
    }

    fn discovery(&self, start: &StartUrl) -> Discovery {
        Discovery::new(self.fetch.clone(), self.policy(start))
    }

    /// Which URLs of a sign-in at `start` may be fetched.
    pub(super) fn policy(&self, start: &StartUrl) -> ChainPolicy {
        ChainPolicy::started_at(start.url(), self.settings.private_addresses)
    }
}

/// Who publishes a resource that is broader than the start URL, unless the settings name it.
///
/// A token for it is valid for other services of its host, too. Whoever controls one path of a host
/// can publish metadata there, to get a token that others accept.
fn publisher_of_broader(found: &DiscoveredResource) -> Option<Publisher> {
    match found.resource_match {
        ResourceMatch::PathPrefix if found.from == MetadataSource::Configured => None,
        ResourceMatch::PathPrefix if found.is_of_whole_host() => Some(Publisher::WholeHost),
        ResourceMatch::PathPrefix => Some(Publisher::AnyPath),
        _ => None,
    }
}

/// Fails with [`ClientError::MetadataTooLong`] when a member of metadata has more entries than the
/// limit.
fn check_length(member: &'static str, count: usize, limit: usize) -> Result<(), ClientError> {
    if count > limit {
        Err(ClientError::MetadataTooLong {
            member,
            count,
            limit,
        })
    } else {
        Ok(())
    }
}

/// The default of the 2025-03-26 revision: the resource's origin is its authorization server.
fn origin_as_server(start: &StartUrl) -> Option<DiscoveredResource> {
    let issuer = Issuer::parse(&start.url().origin().ascii_serialization()).ok()?;
    let resource = ResourceUri::parse(start.url().as_str()).ok()?;
    Some(DiscoveredResource {
        metadata: ProtectedResourceMetadata::new(resource, vec![issuer]),
        // The settings permit this default, as they permit configured metadata.
        from: MetadataSource::Configured,
        resource_match: ResourceMatch::Same,
    })
}

/// Creates a key to bind the token to, if the resource requires that, or accepts it and the
/// authorization server supports it. Fails with [`ClientError::DpopNotSupported`] when the token
/// must be bound and the authorization server does not support it, and when the key cannot be
/// generated.
fn new_binding(
    must_bind: bool,
    accepts_dpop: bool,
    server: &Server,
) -> Result<Option<Arc<DpopBinding>>, ClientError> {
    if must_bind && !server.binds_tokens {
        return Err(ClientError::DpopNotSupported {
            issuer: server.issuer.clone(),
        });
    }
    let binds = must_bind || (accepts_dpop && server.binds_tokens);
    if binds {
        Ok(Some(Arc::new(DpopBinding::generate()?)))
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::UrlPolicy;

    use super::*;

    fn server(binds_tokens: bool) -> Server {
        let metadata =
            CodeFlow::default_metadata(Issuer::parse("https://auth.example.com").unwrap());
        let server =
            Server::from_metadata(&metadata, ChainPolicy::from(UrlPolicy::StartOrigin)).unwrap();
        Server {
            binds_tokens,
            ..server
        }
    }

    /// I8: a token is bound if the resource requires it, or if resource and server can. It is never
    /// unbound if it must be bound.
    #[test]
    fn tokens_are_bound_if_required_or_possible() {
        for (accepts_dpop, server_binds) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let is_bound = |must_bind| {
                let binding = new_binding(must_bind, accepts_dpop, &server(server_binds));
                binding
                    .map(|binding| binding.is_some())
                    .map_err(|error| error.code())
            };
            assert_eq!(
                is_bound(false),
                Ok(accepts_dpop && server_binds),
                "{accepts_dpop} {server_binds}"
            );
            let required = if server_binds {
                Ok(true)
            } else {
                Err("client.no_binding")
            };
            assert_eq!(is_bound(true), required, "{accepts_dpop} {server_binds}");
        }
    }

    /// G3: the default of 2025-03-26 names the origin without path and query, for the resource
    /// itself.
    #[test]
    fn the_origin_is_the_server_by_default() {
        for (url, issuer) in [
            ("https://mcp.example.com/a/mcp", "https://mcp.example.com"),
            (
                "https://mcp.example.com:8443/mcp",
                "https://mcp.example.com:8443",
            ),
            ("http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
        ] {
            let start = StartUrl::parse(url).unwrap();
            let found = origin_as_server(&start).unwrap();
            assert_eq!(
                found.metadata.authorization_servers,
                [Issuer::parse(issuer).unwrap()],
                "{url}"
            );
            assert_eq!(found.metadata.resource.as_str(), url);
            assert_eq!(found.resource_match, ResourceMatch::Same);
        }
    }
}
