//! [`Authorizer`]: obtains access tokens.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use portcullis_discovery::{Fetch, SentSecrets};
use portcullis_metadata::{BearerChallenge, Clock, Issuer, Scopes};

use crate::{
    AuthorizerSettings, ClientError, CredentialStore, Interaction, NonInteractiveGrant,
    ResourceToken, StartUrl, resource_challenge::ResourceChallenge, server::Server,
    token::endpoint::TokenEndpoint,
};

pub(crate) mod broader_resource;
mod builder;
mod client_issuer;
mod clients;
mod code_grant;
mod device_grant;
mod grant_context;
mod known_client;
mod non_interactive;
mod probe;
mod refresh;
mod registration_update;
mod resource_discovery;
mod revocation;
mod selection;
pub(crate) mod settings;
mod sign_in_limit;
mod unbound;

pub use builder::AuthorizerBuilder;
use grant_context::GrantContext;
pub use revocation::Revocation;
use sign_in_limit::SignInLimit;

/// Obtains access tokens for protected resources: discovery, client registration, and a grant.
///
/// It returns tokens to its caller and does not keep them; it keeps registrations in the settings'
/// store. A [`TokenManager`](crate::TokenManager) keeps a token and renews it when the resource
/// rejects it.
pub struct Authorizer {
    /// Records what is sent.
    fetch: Arc<dyn Fetch>,
    sent_secrets: SentSecrets,
    clock: Arc<dyn Clock>,
    mode: Mode,
    settings: AuthorizerSettings,
    /// The authorization server at which this authorizer has used [`AuthorizerSettings::client`].
    bound: Mutex<Option<Issuer>>,
    sign_in_limit: SignInLimit,
}

/// Whether a user takes part in the grant.
enum Mode {
    /// The user signs in with a browser.
    Interactive(Arc<dyn Interaction>),
    /// The user signs in on any device.
    Device(Arc<dyn Interaction>),
    /// The client authenticates itself.
    NonInteractive(NonInteractiveGrant),
}

impl Authorizer {
    /// Builds an authorizer for the authorization code grant with PKCE.
    pub fn builder(interaction: Arc<dyn Interaction>) -> AuthorizerBuilder {
        AuthorizerBuilder::new(Mode::Interactive(interaction))
    }

    /// Builds an authorizer for the device authorization grant (RFC 8628): the user consents on any
    /// device.
    ///
    /// `interaction` shows the code ([`Interaction::show_device_code`]). Its redirect URI is part
    /// of the registration and is never used; it must differ from that of other interactions, so
    /// that they have separate registrations.
    pub fn device_builder(interaction: Arc<dyn Interaction>) -> AuthorizerBuilder {
        AuthorizerBuilder::new(Mode::Device(interaction))
    }

    /// Builds an authorizer for a grant without a user. It registers no client: the client comes
    /// from the settings.
    pub fn non_interactive_builder(grant: NonInteractiveGrant) -> AuthorizerBuilder {
        AuthorizerBuilder::new(Mode::NonInteractive(grant))
    }

    /// Obtains a token for the resource at `start`: sends a request without a token, reads the
    /// challenge, and continues as [`answer_challenge`](Self::answer_challenge).
    ///
    /// # Errors
    /// [`ClientError::NotChallenged`] when the resource does not respond with 401; otherwise as the
    /// steps of the flow.
    pub async fn authorize(&self, start: &StartUrl) -> Result<ResourceToken, ClientError> {
        self.sign_in_limit.reset();
        let challenge = self.probe(start).await?;
        self.obtain(start, &challenge, None).await
    }

    /// Obtains a token for the resource at `start`, which responded with 401 and this challenge.
    /// The challenge is empty if the response had none that could be parsed.
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
        self.sign_in_limit.reset();
        self.obtain(start, &ResourceChallenge::from_bearer(challenge), None)
            .await
    }

    /// Obtains a token. `before` is the token that it replaces. Fails as
    /// [`answer_challenge`](Self::answer_challenge) does.
    pub(crate) async fn obtain(
        &self,
        start: &StartUrl,
        challenge: &ResourceChallenge,
        before: Option<&ResourceToken>,
    ) -> Result<ResourceToken, ClientError> {
        let found = self.discover(start, challenge).await?;
        self.accept_resource(start, &found, before).await?;
        self.accept_unbound(start, &found, before).await?;
        match &self.mode {
            Mode::Interactive(interaction) => self.code_grant(&**interaction, start, &found).await,
            Mode::Device(interaction) => self.device_grant(&**interaction, start, &found).await,
            Mode::NonInteractive(grant) => self.non_interactive_grant(grant, start, &found).await,
        }
    }

    /// The user, if one takes part in the grant.
    pub(crate) fn interaction(&self) -> Option<&dyn Interaction> {
        match &self.mode {
            Mode::Interactive(interaction) | Mode::Device(interaction) => Some(&**interaction),
            Mode::NonInteractive(_) => None,
        }
    }

    /// The secrets that were sent to authorization servers.
    pub(crate) fn sent_secrets(&self) -> &SentSecrets {
        &self.sent_secrets
    }

    /// The store for tokens and registrations.
    pub(crate) fn store(&self) -> &CredentialStore {
        &self.settings.store
    }

    /// The limit of sign-ins that the resource causes.
    pub(crate) fn sign_in_limit(&self) -> &SignInLimit {
        &self.sign_in_limit
    }

    /// The clock that decides when tokens expire.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Whether the settings permit these scopes.
    pub(crate) fn may_request(&self, scopes: &Scopes) -> bool {
        self.scope_limit().is_none_or(|limit| limit.covers(scopes))
    }

    /// The scopes of the settings, if they limit all requests.
    fn scope_limit(&self) -> Option<&Scopes> {
        self.settings
            .scopes
            .as_ref()
            .filter(|_| self.settings.scopes_are_limit)
    }

    /// Whether a rejection is final: a workload's single request is not repeated with more scopes.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self.mode,
            Mode::NonInteractive(NonInteractiveGrant::JwtBearer(_))
        )
    }

    /// The token endpoint of a server, with the authentication method of the settings.
    fn token_endpoint<'a>(&'a self, server: &'a Server) -> TokenEndpoint<'a> {
        TokenEndpoint::of(
            &*self.fetch,
            &*self.clock,
            server,
            self.settings.token_auth_method,
        )
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
