use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{DiscoveredResource, Discovery, Fetch, FetchRequest, UrlPolicy};
use portcullis_metadata::{BearerChallenge, Clock, Issuer, PkceVerifier, ProtectedResourceMetadata, parse_challenges};

use crate::{
    AuthorizationRequest, ClientCredentials, ClientError, Interaction, ResourceToken, StartUrl,
    authorization_request::Asked,
    code_flow::CodeFlow,
    credentials::Registered,
    registration::{self, Registration},
    selection,
    token::Purpose,
    token_request::{self, Grant},
};

/// Gets access tokens for protected resources: discovery, registration, authorization code with PKCE.
///
/// Registrations are kept in memory, each for the authorization server that made it; tokens are handed to the caller.
pub struct Authorizer {
    fetch: Arc<dyn Fetch>,
    interaction: Arc<dyn Interaction>,
    clock: Arc<dyn Clock>,
    settings: AuthorizerSettings,
    registered: Mutex<Vec<Registered>>,
}

/// What an [`Authorizer`] may use beside what it finds out.
#[derive(Clone, Debug)]
pub struct AuthorizerSettings {
    /// The name under which the client registers. `Portcullis` by default.
    pub client_name: String,
    /// Credentials that were registered before. When there are any, no other authorization server is used.
    pub credentials: Vec<ClientCredentials>,
    /// The authorization server to use, of those that the resource lists. By default the first that credentials are
    /// there for, else the first.
    pub authorization_server: Option<Issuer>,
    /// The resource's metadata, for resources that publish none.
    pub resource_metadata: Option<ProtectedResourceMetadata>,
    /// Whether what a resource names may be at private addresses. Not by default.
    pub private_addresses: bool,
}

/// How many registrations are kept; the oldest goes when there are more.
const MAX_REGISTERED: usize = 64;

impl Authorizer {
    /// An authorizer that keeps no registration yet.
    pub fn new(
        fetch: Arc<dyn Fetch>,
        interaction: Arc<dyn Interaction>,
        clock: Arc<dyn Clock>,
        settings: AuthorizerSettings,
    ) -> Self {
        Self { fetch, interaction, clock, settings, registered: Mutex::default() }
    }

    /// Gets a token for the resource at `start`: asks it without a token, takes its challenge, and goes on as
    /// [`answer_challenge`](Self::answer_challenge).
    ///
    /// # Errors
    /// [`ClientError::NotChallenged`] when it does not answer 401; otherwise as the flow goes.
    pub async fn authorize(&self, start: &StartUrl) -> Result<ResourceToken, ClientError> {
        let challenge = self.probe(start).await?;
        self.answer_challenge(start, challenge.as_ref()).await
    }

    /// Gets a token for the resource at `start`, which answered 401 with this challenge, or with none that could be
    /// read.
    ///
    /// # Errors
    /// As the flow goes; each step has its own variants.
    pub async fn answer_challenge(
        &self,
        start: &StartUrl,
        challenge: Option<&BearerChallenge>,
    ) -> Result<ResourceToken, ClientError> {
        let policy = self.policy(start);
        let discovery = Discovery::new(self.fetch.clone(), policy);
        let DiscoveredResource { metadata, .. } = discovery
            .protected_resource(start.url(), challenge, self.settings.resource_metadata.as_ref())
            .await
            .map_err(ClientError::Discovery)?;
        let issuer = self.choose(&metadata)?;
        let server = discovery.authorization_server(issuer).await.map_err(ClientError::Discovery)?;
        let server = CodeFlow::judge(server, policy)?;

        let challenged = challenge.and_then(|challenge| challenge.scope.as_ref());
        let scopes = selection::scopes(challenged, &metadata.scopes_supported, &server.scopes_supported);
        let registration = Registration {
            client_name: &self.settings.client_name,
            redirect_uri: self.interaction.redirect_uri(),
            scopes: &scopes,
        };
        let credentials = self.credentials(&server, &registration, policy).await?;

        let verifier = PkceVerifier::generate().map_err(|_| ClientError::NoRandomness)?;
        let request = AuthorizationRequest::new(
            &server,
            &Asked {
                client_id: &credentials.client_id,
                redirect_uri: registration.redirect_uri,
                challenge: &verifier.challenge(),
                resource: &metadata.resource,
                scopes: &scopes,
            },
        )?;
        let answer = self.interaction.authorize(&request).await?;
        let grant = Grant {
            code: request.judge(&answer)?,
            verifier,
            redirect_uri: registration.redirect_uri,
            resource: &metadata.resource,
        };
        let response = token_request::exchange(&*self.fetch, &server, &credentials, grant, policy).await?;
        let purpose = Purpose { start, issuer: &server.issuer, resource: &metadata.resource, asked: &scopes };
        ResourceToken::new(response, &purpose, self.clock.unix())
    }

    fn policy(&self, start: &StartUrl) -> UrlPolicy {
        UrlPolicy::Peer { loopback_http: start.is_loopback(), private_addresses: self.settings.private_addresses }
    }

    async fn probe(&self, start: &StartUrl) -> Result<Option<BearerChallenge>, ClientError> {
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        // The person wrote this URL, so that it may be at a private address.
        let get = FetchRequest::new(Method::GET, start.url().clone(), UrlPolicy::Operator);
        // Some endpoints judge the method before the token, and take POST alone.
        let ping = FetchRequest::post_json(start.url().clone(), PING, UrlPolicy::Operator);
        let mut status = StatusCode::OK;
        for request in [get, ping] {
            let request = request.header(header::ACCEPT, accept.clone());
            let answer = self.fetch.open(request).await.map_err(ClientError::Resource)?;
            status = answer.status;
            if status == StatusCode::UNAUTHORIZED {
                return Ok(bearer_challenge(&answer.headers));
            }
            if !status.is_client_error() {
                break;
            }
        }
        Err(ClientError::NotChallenged { status })
    }

    fn choose<'a>(&self, metadata: &'a ProtectedResourceMetadata) -> Result<&'a Issuer, ClientError> {
        let bound: Vec<_> = self.settings.credentials.iter().map(|held| held.issuer.clone()).collect();
        let wanted = self.settings.authorization_server.as_ref();
        selection::server(&metadata.authorization_servers, wanted, &bound, |issuer| {
            self.registered().iter().any(|held| held.credentials.issuer == *issuer)
        })
    }

    /// Credentials that the caller brought, else ones registered before, else newly registered ones.
    async fn credentials(
        &self,
        server: &CodeFlow,
        registration: &Registration<'_>,
        policy: UrlPolicy,
    ) -> Result<ClientCredentials, ClientError> {
        if let Some(held) = self.settings.credentials.iter().find(|held| held.issuer == server.issuer) {
            return Ok(held.clone());
        }
        let now = self.clock.unix();
        let usable = |held: &Registered| {
            held.credentials.issuer == server.issuer && held.serves(registration.redirect_uri.as_str(), now)
        };
        if let Some(held) = self.registered().iter().find(|held| usable(held)) {
            return Ok(held.credentials.clone());
        }
        let registered = registration::register(&*self.fetch, server, registration, policy).await?;
        let credentials = registered.credentials.clone();
        let mut held = self.registered();
        held.retain(|held| held.credentials.issuer != server.issuer);
        if held.len() == MAX_REGISTERED {
            held.remove(0);
        }
        held.push(registered);
        Ok(credentials)
    }

    fn registered(&self) -> std::sync::MutexGuard<'_, Vec<Registered>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// The first Bearer challenge of an answer. One that cannot be read counts as none: the well-known URLs remain.
pub(crate) fn bearer_challenge(headers: &HeaderMap) -> Option<BearerChallenge> {
    let values = headers.get_all(header::WWW_AUTHENTICATE).iter().map(HeaderValue::as_bytes);
    parse_challenges(values).ok().and_then(|challenges| BearerChallenge::from_challenges(&challenges))
}

impl Default for AuthorizerSettings {
    fn default() -> Self {
        Self {
            client_name: "Portcullis".into(),
            credentials: Vec::new(),
            authorization_server: None,
            resource_metadata: None,
            private_addresses: false,
        }
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
