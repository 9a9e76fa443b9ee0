//! [`Authorizer`]: obtains access tokens.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use http::{HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{
    ChainPolicy, DiscoveredResource, Discovery, DiscoveryError, Fetch, FetchRequest, MetadataSource, OpenResponse,
    ResourceMatch, UrlPolicy,
};
use portcullis_metadata::{
    AuthorizationServerMetadata, BearerChallenge, Clock, Issuer, ProtectedResourceMetadata, ResourceUri, Scopes,
};

use crate::{
    AuthorizerSettings, ClientError, CredentialStore, Interaction, NonInteractiveGrant, ResourceRedirects,
    ResourceToken, StartUrl, authorization::code_flow::CodeFlow, authorization::server::Server,
    provider::RequestProfile, resource_challenge::ResourceChallenge, token::dpop::DpopBinding,
    token::endpoint::TokenEndpoint,
};

mod clients;
mod code_grant;
pub(crate) mod device_grant;
pub(crate) mod grant;
mod grant_context;
mod known_client;
pub(crate) mod new_registration;
mod non_interactive;
mod refresh;
mod registration_update;
pub(crate) mod selection;
pub(crate) mod settings;
mod unbound;

use grant_context::GrantContext;
pub use refresh::Revocation;

/// Obtains access tokens for protected resources: discovery, client registration, and a grant.
///
/// It returns tokens to its caller and does not keep them; it keeps registrations in the settings' store. A
/// [`TokenManager`](crate::TokenManager) keeps a token and renews it when the resource rejects it.
pub struct Authorizer {
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    mode: Mode,
    settings: AuthorizerSettings,
    /// The authorization server at which [`AuthorizerSettings::client`] was used.
    bound: Mutex<Option<Issuer>>,
}

/// Whether a user takes part in the grant.
enum Mode {
    Interactive(Arc<dyn Interaction>),
    Device(Arc<dyn Interaction>),
    NonInteractive(NonInteractiveGrant),
}

impl Authorizer {
    /// Creates an authorizer for the authorization code grant with PKCE.
    pub fn new(
        fetch: Arc<dyn Fetch>,
        interaction: Arc<dyn Interaction>,
        clock: Arc<dyn Clock>,
        settings: AuthorizerSettings,
    ) -> Self {
        Self::with_mode(fetch, Mode::Interactive(interaction), clock, settings)
    }

    /// Creates an authorizer for the device authorization grant (RFC 8628): the user consents on any device.
    ///
    /// `interaction` shows the code ([`Interaction::show_device_code`]). Its redirect URI is part of the registration
    /// and is never used; it must differ from that of other interactions, so that they have separate registrations.
    pub fn device(
        fetch: Arc<dyn Fetch>,
        interaction: Arc<dyn Interaction>,
        clock: Arc<dyn Clock>,
        settings: AuthorizerSettings,
    ) -> Self {
        Self::with_mode(fetch, Mode::Device(interaction), clock, settings)
    }

    /// Creates an authorizer for a grant without a user. It registers no client: the client comes from the settings.
    pub fn non_interactive(
        fetch: Arc<dyn Fetch>,
        grant: NonInteractiveGrant,
        clock: Arc<dyn Clock>,
        settings: AuthorizerSettings,
    ) -> Self {
        Self::with_mode(fetch, Mode::NonInteractive(grant), clock, settings)
    }

    fn with_mode(fetch: Arc<dyn Fetch>, mode: Mode, clock: Arc<dyn Clock>, settings: AuthorizerSettings) -> Self {
        Self { fetch, clock, mode, settings, bound: Mutex::default() }
    }

    /// Obtains a token for the resource at `start`: sends a request without a token, reads the challenge, and continues
    /// as [`answer_challenge`](Self::answer_challenge).
    ///
    /// # Errors
    /// [`ClientError::NotChallenged`] when the resource does not respond with 401; otherwise as the steps of the flow.
    pub async fn authorize(&self, start: &StartUrl) -> Result<ResourceToken, ClientError> {
        let challenge = self.probe(start).await?;
        self.obtain(start, &challenge, None).await
    }

    /// Obtains a token for the resource at `start`, which responded with 401 and this challenge. The challenge is empty
    /// if the response had none that could be parsed.
    ///
    /// # Errors
    /// Each step of the flow has its own variants.
    ///
    /// # Examples
    /// ```
    /// # use portcullis_client::{Authorizer, ClientError, ResourceToken, StartUrl};
    /// # use portcullis_metadata::{BearerChallenge, parse_challenges};
    /// /// Obtains a token after the caller's own request got a 401 with this `WWW-Authenticate` header.
    /// async fn after_401(authorizer: &Authorizer, start: &StartUrl, header: &str) -> Result<ResourceToken, ClientError> {
    ///     let challenges = parse_challenges([header.as_bytes()]).unwrap_or_default();
    ///     let challenge = BearerChallenge::from_challenges(&challenges);
    ///     authorizer.answer_challenge(start, challenge.as_ref()).await
    /// }
    /// ```
    pub async fn answer_challenge(
        &self,
        start: &StartUrl,
        challenge: Option<&BearerChallenge>,
    ) -> Result<ResourceToken, ClientError> {
        self.obtain(start, &ResourceChallenge::from_bearer(challenge), None).await
    }

    /// Obtains a token. `before` is the token that it replaces.
    pub(crate) async fn obtain(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
        before: Option<&ResourceToken>,
    ) -> Result<ResourceToken, ClientError> {
        let found = self.find(start, challenge).await?;
        self.accept_resource(start, &found, before).await?;
        self.accept_unbound(start, &found, before).await?;
        match &self.mode {
            Mode::Interactive(interaction) => self.code_grant(&**interaction, start, &found).await,
            Mode::Device(interaction) => self.device_grant(&**interaction, start, &found).await,
            Mode::NonInteractive(grant) => self.non_interactive_grant(grant, start, &found).await,
        }
    }

    /// Sends requests without a token to get the challenge. Redirects are followed as [`ResourceRedirects`] defines.
    pub(crate) async fn probe(&self, start: &StartUrl) -> Result<ResourceChallenge, ClientError> {
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        // The user entered this URL, so a private address is allowed.
        let get = FetchRequest::new(Method::GET, start.url().clone(), UrlPolicy::StartOrigin);
        // Some endpoints check the method before the token and accept only POST.
        let ping = FetchRequest::post_json(start.url().clone(), PING, UrlPolicy::StartOrigin);
        let mut failure = ClientError::NotChallenged { status: StatusCode::OK, response: None };
        for request in [get, ping] {
            let answer = match self.open_resource(start, request.header(header::ACCEPT, accept.clone())).await {
                // GET alone may redirect to a documentation page.
                Err(error @ ClientError::Redirected(_)) => {
                    failure = error;
                    continue;
                }
                other => other?,
            };
            let status = answer.status;
            if status == StatusCode::UNAUTHORIZED {
                return Ok(ResourceChallenge::from_headers(&answer.headers));
            }
            failure = ClientError::NotChallenged { status, response: Some(Box::new(answer.excerpt().await)) };
            if !status.is_client_error() {
                break;
            }
        }
        Err(failure)
    }

    /// Sends a request to the resource, and follows redirects within the start URL.
    async fn open_resource(&self, start: &StartUrl, mut request: FetchRequest) -> Result<OpenResponse, ClientError> {
        let (mut redirects, resource) = (ResourceRedirects::default(), start.resource());
        loop {
            let answer = self.fetch.open(request.clone()).await.map_err(ClientError::Resource)?;
            if !answer.status.is_redirection() {
                return Ok(answer);
            }
            request.url = redirects.follow(answer.status, &answer.headers, &request.url, resource.as_ref())?;
        }
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

    pub(crate) fn store(&self) -> &CredentialStore {
        &self.settings.store
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Whether the settings permit these scopes.
    pub(crate) fn may_request(&self, scopes: &Scopes) -> bool {
        self.scope_limit().is_none_or(|limit| limit.covers(scopes))
    }

    fn scope_limit(&self) -> Option<&Scopes> {
        self.settings.scopes.as_ref().filter(|_| self.settings.scopes_are_limit)
    }

    /// Whether a rejection is final: a workload's single request is not repeated with more scopes.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.mode, Mode::NonInteractive(NonInteractiveGrant::JwtBearer(_)))
    }

    async fn find(&self, start: &StartUrl, challenge: &ResourceChallenge) -> Result<GrantContext, ClientError> {
        let DiscoveredResource { metadata: protected, from, resource_match } = self.resource(start, challenge).await?;
        let is_broader = resource_match == ResourceMatch::PathPrefix && from != MetadataSource::Configured;
        let ProtectedResourceMetadata {
            resource,
            authorization_servers,
            scopes_supported,
            dpop_bound_access_tokens_required,
            ..
        } = protected;
        let issuer = self.choose(&authorization_servers)?;
        let metadata = self.server(start, issuer).await?;
        let policy = self.policy(start);
        let server = Server::from_metadata(&metadata, policy.clone())?;

        let challenged = challenge.scopes();
        let named = match &self.settings.scopes {
            Some(scopes) => selection::with_offline_access(scopes.clone(), &server.scopes_supported),
            None => {
                let challenged = challenged.map(|scopes| scopes.in_listed_form(&scopes_supported));
                selection::scopes(challenged.as_ref(), &scopes_supported, &server.scopes_supported)
            }
        };
        let must_bind = challenge.requires_dpop() || dpop_bound_access_tokens_required == Some(true);
        if must_bind && !server.binds_tokens {
            return Err(ClientError::DpopNotSupported { issuer: server.issuer });
        }
        let binds = must_bind || (challenge.accepts_dpop() && server.binds_tokens);
        let binding = if binds { Some(Arc::new(DpopBinding::generate()?)) } else { None };
        let scopes = match self.scope_limit() {
            Some(limit) => limit.clone(),
            None => named.union(&challenge.additional_scopes().in_listed_form(&scopes_supported)),
        };
        let registered = selection::registered(&scopes, &scopes_supported, &server.scopes_supported);
        let profile = RequestProfile::new(&self.settings.provider, &metadata, &resource);
        let is_step_up = challenge.is_step_up();
        Ok(GrantContext { resource, is_broader, metadata, policy, scopes, registered, is_step_up, binding, profile })
    }

    /// Requires acceptance of a resource that is broader than the start URL, before the sign-in. MCP clients accept
    /// such resources, although RFC 9728 section 3.3 does not.
    async fn accept_resource(
        &self,
        start: &StartUrl,
        found: &GrantContext,
        before: Option<&ResourceToken>,
    ) -> Result<(), ClientError> {
        // It was accepted for the token that is being replaced.
        let is_known = |before: &ResourceToken| {
            (before.start_url(), before.resource(), before.issuer())
                == (Some(start), &found.resource, &found.metadata.issuer)
        };
        if !found.is_broader || self.settings.accept_broader_resource || before.is_some_and(is_known) {
            return Ok(());
        }
        let accepted = match &self.mode {
            Mode::Interactive(interaction) | Mode::Device(interaction) => {
                interaction.accept_broader_resource(start, &found.resource).await?
            }
            Mode::NonInteractive(_) => false,
        };
        match accepted {
            true => Ok(()),
            false => Err(ClientError::BroaderResource { start: start.clone(), resource: found.resource.clone() }),
        }
    }

    async fn resource(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
    ) -> Result<DiscoveredResource, ClientError> {
        let configured = self.settings.resource_metadata.as_ref();
        let found = self.discovery(start).protected_resource(start.url(), challenge.parameters(), configured).await;
        match found {
            Err(error @ DiscoveryError::NotFound(_)) if self.settings.revision_2025_03_26 => {
                own_server(start).ok_or(ClientError::Discovery(error))
            }
            found => found.map_err(ClientError::Discovery),
        }
    }

    async fn server(&self, start: &StartUrl, issuer: &Issuer) -> Result<AuthorizationServerMetadata, ClientError> {
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

    fn choose<'a>(&self, listed: &'a [Issuer]) -> Result<&'a Issuer, ClientError> {
        let bound: Vec<_> = self.settings.credentials.iter().map(|held| held.issuer.clone()).collect();
        let wanted = self.settings.authorization_server.as_ref();
        selection::server(listed, wanted, &bound, |issuer| self.settings.store.knows(issuer))
    }

    fn token_endpoint<'a>(&'a self, server: &'a Server) -> TokenEndpoint<'a> {
        TokenEndpoint::of(&*self.fetch, &*self.clock, server, self.settings.token_auth_method)
    }

    fn discovery(&self, start: &StartUrl) -> Discovery {
        Discovery::new(self.fetch.clone(), self.policy(start))
    }

    fn policy(&self, start: &StartUrl) -> ChainPolicy {
        ChainPolicy::started_at(start.url(), self.settings.private_addresses)
    }
}

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// The default of the 2025-03-26 revision: the resource's origin is its authorization server.
fn own_server(start: &StartUrl) -> Option<DiscoveredResource> {
    let issuer = Issuer::parse(&start.url().origin().ascii_serialization()).ok()?;
    let resource = ResourceUri::parse(start.url().as_str()).ok()?;
    Some(DiscoveredResource {
        metadata: ProtectedResourceMetadata::new(resource, vec![issuer]),
        from: MetadataSource::Configured,
        resource_match: ResourceMatch::Same,
    })
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod non_interactive_tests;
#[cfg(test)]
mod tests;
