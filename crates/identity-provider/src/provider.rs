//! [`IdentityProvider`]: signs users in.

mod authorization;
mod identify;
mod revocation;
mod token_requests;
mod user_api;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use portcullis_discovery::Fetch;
use portcullis_metadata::{Clock, Scopes, authorization::PkceChallenge};
use tokio::runtime::Handle;

use crate::{
    ProviderKind, ProviderSettings, ProviderSettingsError,
    bounded_fetch::BoundedFetch,
    endpoints::{DiscoveredEndpoints, EndpointSource, github},
    kinds::{Profile, Protocol},
    tenant::{Tenant, tenants},
};

/// Signs users in at one identity provider.
///
/// Each call takes at most about 20 s: a request takes at most 10 s, and its endpoint may have to
/// be discovered before. At most 64 requests are sent to the provider at once.
pub struct IdentityProvider {
    settings: ProviderSettings,
    profile: &'static Profile,
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    endpoints: EndpointSource,
    /// Whether the application authenticates with the other of two methods that the provider lists.
    uses_other_authentication: AtomicBool,
    /// The issuers of ID tokens. Empty if the provider has none.
    tenants: Vec<Tenant>,
}

/// A request that sends a browser to the provider.
#[derive(Clone, Copy)]
pub struct SignInRequest<'a> {
    /// The redirect URI that is registered at the provider.
    pub redirect_uri: &'a str,
    /// The value that the provider returns with the code.
    pub state: &'a str,
    /// The value that the ID token must contain.
    pub nonce: &'a str,
    /// The challenge of the verifier in the [`Callback`].
    pub challenge: &'a PkceChallenge,
}

/// Prints neither `state` nor `nonce`.
impl fmt::Debug for SignInRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInRequest")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

/// What the provider sent back with the browser, and what the request contained.
#[derive(Clone, Copy)]
pub struct Callback<'a> {
    /// `code` of the response.
    pub code: &'a str,
    /// `iss` of the response, if it has one.
    pub iss: Option<&'a str>,
    /// The redirect URI of the request.
    pub redirect_uri: &'a str,
    /// The PKCE verifier of the request.
    pub verifier: &'a str,
}

/// Prints neither the code nor the verifier.
impl fmt::Debug for Callback<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callback")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

impl IdentityProvider {
    /// Creates a provider. Nothing is fetched.
    ///
    /// `fetch` sends the requests. The provider's keys are fetched on `control`, which must have
    /// tokio's time enabled, as must the runtimes that call the other methods.
    ///
    /// # Errors
    /// Fails if the settings cannot be used.
    pub fn new(
        settings: ProviderSettings,
        fetch: Arc<dyn Fetch>,
        clock: Arc<dyn Clock>,
        control: Handle,
    ) -> Result<Arc<Self>, ProviderSettingsError> {
        check(&settings)?;
        let profile = settings.kind.profile();
        let fetch: Arc<dyn Fetch> = BoundedFetch::new(fetch);
        let (endpoints, tenants) = match profile.protocol {
            Protocol::OpenId => {
                let tenants = tenants(&settings, &fetch, &clock, &control)?;
                let discovered =
                    DiscoveredEndpoints::new(&settings, Arc::clone(&fetch), Arc::clone(&clock));
                (EndpointSource::Discovered(Box::new(discovered)), tenants)
            }
            Protocol::GitHub => {
                let known = Arc::new(github(&settings)?);
                (EndpointSource::Known(known), Vec::new())
            }
        };
        Ok(Arc::new(Self {
            uses_other_authentication: AtomicBool::new(false),
            settings,
            profile,
            fetch,
            clock,
            endpoints,
            tenants,
        }))
    }

    /// Returns the name of the provider in this server.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the kind of provider.
    pub fn kind(&self) -> ProviderKind {
        self.settings.kind
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ProviderSettings {
        &self.settings
    }
}

/// Prints the name and the kind.
impl fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityProvider")
            .field("name", &self.settings.name)
            .field("kind", &self.settings.kind)
            .finish_non_exhaustive()
    }
}

/// Checks what the kinds have in common.
fn check(settings: &ProviderSettings) -> Result<(), ProviderSettingsError> {
    let is_name_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !(1..=32).contains(&settings.name.len()) || !settings.name.bytes().all(is_name_byte) {
        return Err(ProviderSettingsError::Name);
    }
    if settings.client_id.is_empty() || settings.client_secret.secret().is_empty() {
        return Err(ProviderSettingsError::Credentials);
    }
    if !settings.scopes.iter().all(|scope| Scopes::is_name(scope)) {
        return Err(ProviderSettingsError::Scope);
    }
    let is_open_id = settings.kind.profile().protocol == Protocol::OpenId;
    let has_open_id = settings.scopes.iter().any(|scope| &**scope == "openid");
    if is_open_id && !settings.scopes.is_empty() && !has_open_id {
        return Err(ProviderSettingsError::NoOpenIdScope);
    }
    if !is_open_id && !settings.tenants.is_empty() {
        return Err(ProviderSettingsError::TenantsNotSupported);
    }
    Ok(())
}
