//! [`Endpoints`]: where requests to a provider go, and the cache of discovered endpoints.

mod github;

use std::{sync::Arc, time::Duration};

use portcullis_discovery::{Discovery, Fetch, UrlPolicy};
use portcullis_metadata::{
    AuthorizationServerMetadata, Clock, Issuer, authorization::PkceChallenge,
};
use serde_json::Value;
use tokio::{sync::Mutex, time::timeout};
use url::Url;

pub(crate) use self::github::github;
use crate::{
    ClientAuthentication, ProviderError, ProviderSettings,
    bounded_fetch::TIMEOUT,
    kinds::{OfflineAccess, Profile},
    tenant::{for_organizations, issuer_tenant},
};

/// How long metadata is used before it is fetched again.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// How long metadata is used while it cannot be fetched.
const MAX_STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// The time between two attempts after a failure.
const COOLDOWN: Duration = Duration::from_secs(10);
/// The maximum duration of one attempt, which is shorter than that of the call that waits for it.
const FETCH_TIMEOUT: Duration = Duration::from_secs(8);

/// An endpoint that this process calls.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    pub(crate) policy: UrlPolicy,
}

/// The endpoints of a provider, and what they support.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    /// The URL to which the browser is sent.
    pub(crate) authorization: Url,
    pub(crate) token: Endpoint,
    pub(crate) user_api: Option<Endpoint>,
    pub(crate) revocation: Option<Endpoint>,
    pub(crate) client_authentication: ClientAuthentication,
    /// The other method, if the application may be registered for that one.
    pub(crate) other_authentication: Option<ClientAuthentication>,
    /// Whether every authorization response has `iss` (RFC 9207).
    pub(crate) sends_issuer: bool,
    pub(crate) has_pkce: bool,
    /// Whether `offline_access` is added to the default scopes.
    pub(crate) has_offline_access: bool,
}

/// Where the endpoints of a provider come from.
pub(crate) enum EndpointSource {
    Known(Arc<Endpoints>),
    Discovered(Box<DiscoveredEndpoints>),
}

impl EndpointSource {
    /// Returns the endpoints. Waits at most 10 s if they must be fetched.
    pub(crate) async fn get(&self) -> Result<Arc<Endpoints>, ProviderError> {
        match self {
            Self::Known(endpoints) => Ok(Arc::clone(endpoints)),
            Self::Discovered(discovered) => timeout(TIMEOUT, discovered.get())
                .await
                .unwrap_or(Err(ProviderError::Unreachable("fetch.timeout".into()))),
        }
    }
}

/// The endpoints in a provider's metadata.
pub(crate) struct DiscoveredEndpoints {
    discovery: Discovery,
    clock: Arc<dyn Clock>,
    issuer: Issuer,
    policy: UrlPolicy,
    profile: &'static Profile,
    client_authentication: Option<ClientAuthentication>,
    /// The tenant whose endpoints are replaced by those for any organization.
    replaced_tenant: Option<Box<str>>,
    /// Locked while metadata is fetched, so that there is one fetch at a time.
    cached: Mutex<Cached>,
}

/// The endpoints and the last failure, each with its monotonic time.
#[derive(Default)]
struct Cached {
    endpoints: Option<(Arc<Endpoints>, Duration)>,
    failure: Option<(ProviderError, Duration)>,
}

impl DiscoveredEndpoints {
    pub(crate) fn new(
        settings: &ProviderSettings,
        fetch: Arc<dyn Fetch>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let replaced_tenant = if settings.tenants.len() > 1 {
            issuer_tenant(&settings.issuer)
        } else {
            None
        };
        Self {
            discovery: Discovery::new(fetch, settings.url_policy),
            clock,
            issuer: settings.issuer.clone(),
            policy: settings.url_policy,
            profile: settings.kind.profile(),
            client_authentication: settings.client_authentication,
            replaced_tenant,
            cached: Mutex::default(),
        }
    }

    async fn get(&self) -> Result<Arc<Endpoints>, ProviderError> {
        let mut cached = self.cached.lock().await;
        let now = self.clock.monotonic();
        let usable = |max_age| {
            cached.endpoints.as_ref().and_then(|(endpoints, fetched)| {
                (now.saturating_sub(*fetched) < max_age).then(|| Arc::clone(endpoints))
            })
        };
        if let Some(endpoints) = usable(MAX_AGE) {
            return Ok(endpoints);
        }
        let stale = usable(MAX_STALE);
        if let Some((failure, failed)) = &cached.failure
            && now.saturating_sub(*failed) < COOLDOWN
        {
            return stale.ok_or_else(|| failure.clone());
        }
        let fetched = timeout(FETCH_TIMEOUT, self.fetch())
            .await
            .unwrap_or(Err(ProviderError::Unreachable("fetch.timeout".into())));
        match fetched {
            Ok(endpoints) => {
                let endpoints = Arc::new(endpoints);
                *cached = Cached {
                    endpoints: Some((Arc::clone(&endpoints), now)),
                    failure: None,
                };
                Ok(endpoints)
            }
            Err(error) => {
                cached.failure = Some((error.clone(), now));
                // Without metadata, the caller reports the error.
                let Some(stale) = stale else {
                    return Err(error);
                };
                tracing::warn!(
                    provider.issuer = %self.issuer,
                    error.code = error.code(),
                    "cannot fetch the identity provider's metadata again, so that of an earlier fetch is used: {error}"
                );
                Ok(stale)
            }
        }
    }

    async fn fetch(&self) -> Result<Endpoints, ProviderError> {
        let metadata = self.discovery.authorization_server(&self.issuer).await?;
        let missing = || ProviderError::ResponseInvalid("metadata.endpoint_missing");
        let (client_authentication, other_authentication) = self.client_authentication(&metadata);
        let has_pkce = match &metadata.code_challenge_methods_supported {
            Some(methods) => methods.iter().any(|method| method == PkceChallenge::METHOD),
            None => self.profile.has_unlisted_pkce,
        };
        let has_offline_access = match self.profile.offline_access {
            OfflineAccess::Requested => true,
            OfflineAccess::NotRequested => false,
            OfflineAccess::IfListed => match &metadata.scopes_supported {
                Some(scopes) => scopes.iter().any(|scope| scope == "offline_access"),
                None => true,
            },
        };
        let user_api = match metadata.extra.get("userinfo_endpoint") {
            Some(Value::String(url)) => Some(
                Url::parse(url)
                    .map_err(|_| ProviderError::ResponseInvalid("metadata.userinfo_endpoint"))?,
            ),
            _ => None,
        };
        let other_host = &mut None;
        let token = metadata.token_endpoint.ok_or_else(missing)?;
        Ok(Endpoints {
            authorization: self
                .of_all_tenants(metadata.authorization_endpoint.ok_or_else(missing)?),
            token: self.endpoint(token, other_host).await,
            user_api: self.optional_endpoint(user_api, other_host).await,
            revocation: self
                .optional_endpoint(metadata.revocation_endpoint, other_host)
                .await,
            client_authentication,
            other_authentication,
            sends_issuer: metadata.authorization_response_iss_parameter_supported,
            has_pkce,
            has_offline_access,
        })
    }

    /// Returns the configured method, that of the kind, or one that the metadata lists, and the
    /// other one if it is listed, too. Post is preferred, because servers differ in how they decode
    /// the parts of the header.
    fn client_authentication(
        &self,
        metadata: &AuthorizationServerMetadata,
    ) -> (ClientAuthentication, Option<ClientAuthentication>) {
        let fixed = self
            .client_authentication
            .or(self.profile.client_authentication);
        if let Some(fixed) = fixed {
            return (fixed, None);
        }
        let lists = |name| {
            let mut methods = metadata
                .token_endpoint_auth_methods_supported
                .iter()
                .flatten();
            methods.any(|method| method == name)
        };
        let (post, basic) = (ClientAuthentication::Post, ClientAuthentication::Basic);
        match (lists("client_secret_post"), lists("client_secret_basic")) {
            (true, true) => (post, Some(basic)),
            (true, false) => (post, None),
            (false, _) => (basic, None),
        }
    }

    async fn optional_endpoint(
        &self,
        url: Option<Url>,
        other_host: &mut Option<UrlPolicy>,
    ) -> Option<Endpoint> {
        match url {
            Some(url) => Some(self.endpoint(url, other_host).await),
            None => None,
        }
    }

    /// Returns an endpoint with its policy. That of other hosts than the issuer's may need a name
    /// resolution, and is the same for all of them: it is kept in `other_host`.
    async fn endpoint(&self, url: Url, other_host: &mut Option<UrlPolicy>) -> Endpoint {
        let url = self.of_all_tenants(url);
        let issuer = self.issuer.url();
        let policy = match *other_host {
            Some(policy) if url.host() != issuer.host() => policy,
            _ => self.policy.of_named(issuer, &url).await,
        };
        if url.host() != issuer.host() {
            *other_host = Some(policy);
        }
        Endpoint { url, policy }
    }

    fn of_all_tenants(&self, url: Url) -> Url {
        match &self.replaced_tenant {
            Some(tenant) => for_organizations(url, tenant),
            None => url,
        }
    }
}

#[cfg(test)]
mod tests;
