//! [`Broker`]: everything that the endpoints share.

use std::sync::Arc;

use bytes::Bytes;
use portcullis_authorization_server::{
    ErrorResponse, ServerMetadata, StoreError,
    client::{Credential, GrantType, RedirectHost, RedirectHosts},
};
use portcullis_discovery::{Fetch, UrlPolicy};
use portcullis_identity_provider::{IdentityProvider, ProviderError, ProviderSettingsError};
use portcullis_metadata::{Clock, JwkSet, ResourceUri, Scopes, UnixTime, syntax::is_loopback};
use portcullis_state_store::records::RecordStore;
use tokio::runtime::Handle;
use url::Url;

use crate::{
    access_tokens::AccessTokens,
    clients::{Clients, Documents},
    cookies::Cookies,
    endpoints::Route,
    ends::Ends,
    keys::BrokerKeys,
    limits::AddressLimits,
    observer::{BrokerEvent, BrokerObserver, EndReason, GrantOwner},
    pages::Layout,
    records::{CLIENTS, GRANTS, OwnerRecord, SharedGrantEnd},
    rejected_application::ApplicationWarnings,
    settings::BrokerSettings,
    store::{BrokerStore, EndListener, EndedGrant, log_failure, sealed_records::SealedRecords},
};

/// An authorization server in front of identity providers. It answers the requests of clients and
/// browsers ([`handle`](Self::handle)).
pub struct Broker {
    pub(crate) settings: BrokerSettings,
    pub(crate) keys: Arc<BrokerKeys>,
    pub(crate) store: BrokerStore,
    pub(crate) clients: Clients,
    /// In the order of the settings.
    pub(crate) providers: Vec<Arc<IdentityProvider>>,
    pub(crate) redirects: RedirectHosts,
    pub(crate) resource_uris: Vec<ResourceUri>,
    pub(crate) access_tokens: AccessTokens,
    pub(crate) metadata: Bytes,
    pub(crate) metadata_paths: Vec<Box<str>>,
    pub(crate) jwks: Bytes,
    pub(crate) cookies: Cookies,
    pub(crate) token_endpoint: String,
    /// The origin of its pages, as browsers send it.
    pub(crate) origin: String,
    pub(crate) layout: Layout,
    pub(crate) limits: AddressLimits,
    pub(crate) clock: Arc<dyn Clock>,
    application_warnings: ApplicationWarnings,
    observer: Arc<dyn BrokerObserver>,
}

/// What a broker uses, and what outlives it when its settings change.
pub struct BrokerParts {
    /// The keys.
    pub keys: Arc<BrokerKeys>,
    /// The durable records.
    pub records: Arc<dyn RecordStore>,
    /// The ends that the guards ask for.
    pub ends: Arc<Ends>,
    /// How each provider is reached, in the order of the settings.
    pub provider_fetches: Vec<Arc<dyn Fetch>>,
    /// How metadata documents of clients are fetched.
    pub document_fetch: Arc<dyn Fetch>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The runtime of background requests.
    pub control: Handle,
    /// Receives what happened.
    pub observer: Arc<dyn BrokerObserver>,
}

/// Why a broker cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The settings of a provider cannot be used.
    #[error("the provider {name} cannot be used")]
    Provider {
        /// The name of the provider.
        name: Box<str>,
        /// Why.
        #[source]
        error: ProviderSettingsError,
    },
    /// The settings have no provider, no resource, or a malformed value.
    #[error("the settings of the broker cannot be used: {0}")]
    Settings(&'static str),
}

impl Broker {
    /// Creates a broker. Nothing is fetched and no record is read.
    ///
    /// # Errors
    /// Fails when the settings cannot be used.
    pub fn new(settings: BrokerSettings, parts: BrokerParts) -> Result<Arc<Self>, BrokerError> {
        let invalid = |reason| BrokerError::Settings(reason);
        if settings.resources.is_empty() {
            return Err(invalid("there is no resource"));
        }
        if settings.providers.is_empty() || settings.providers.len() != parts.provider_fetches.len()
        {
            return Err(invalid("there is no provider, or one without a fetcher"));
        }
        let providers = providers(&settings, &parts)?;
        let base_url = settings.issuer.url().clone();
        let hosts = settings.clients.redirect_hosts.iter();
        let hosts = hosts
            .map(|host| RedirectHost::parse(host))
            .collect::<Result<Vec<_>, _>>();
        let redirects =
            RedirectHosts::new(hosts.map_err(|_| invalid("a redirect host is malformed"))?);
        let records = SealedRecords::new(
            Arc::clone(&parts.records),
            Arc::clone(&parts.keys),
            Arc::clone(&parts.clock),
        );
        let listener = Arc::new(Listener {
            providers: providers.clone(),
            observer: Arc::clone(&parts.observer),
            control: parts.control.clone(),
        });
        let store = BrokerStore::new(records, &settings, Arc::clone(&parts.ends), listener);
        let documents = settings.clients.documents.then(|| {
            Documents::new(
                Arc::clone(&parts.document_fetch),
                redirects.clone(),
                UrlPolicy::peer_of(&base_url),
                is_loopback(&base_url),
            )
        });
        let access_tokens =
            AccessTokens::new(&settings, Arc::clone(&parts.keys), Arc::clone(&parts.clock));
        Ok(Arc::new(Self {
            metadata: metadata(&settings, &base_url).ok_or(invalid("the issuer has a path"))?,
            metadata_paths: metadata_paths(&settings),
            jwks: parts.keys.public_jwks().into(),
            cookies: Cookies::new(&base_url),
            token_endpoint: base_url
                .join(Route::Token.path())
                .map(String::from)
                .map_err(|_| invalid("the issuer has a path"))?,
            origin: base_url.origin().ascii_serialization(),
            layout: Layout::new(&settings.pages, &settings.issuer),
            limits: AddressLimits::new(&parts.clock).ok_or(invalid("a rate is malformed"))?,
            access_tokens: access_tokens.ok_or(invalid("the public keys cannot be imported"))?,
            resource_uris: settings
                .resources
                .iter()
                .map(|resource| resource.uri.clone())
                .collect(),
            clients: Clients {
                store: store.clone(),
                documents,
            },
            store,
            keys: parts.keys,
            providers,
            redirects,
            clock: parts.clock,
            application_warnings: ApplicationWarnings::default(),
            observer: parts.observer,
            settings,
        }))
    }

    /// Reads the ends of earlier processes, so that their tokens stay revoked. Call it before the
    /// first request.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    pub async fn load_ends(&self) -> Result<(), StoreError> {
        self.store.load_ends().await
    }

    /// Returns whether the records were sealed with other keys than those of this broker, so that
    /// no client and no grant can be read. Call it before the first request.
    ///
    /// # Errors
    /// Fails when the store cannot be read.
    pub async fn has_foreign_records(&self) -> Result<bool, StoreError> {
        for table in [CLIENTS, GRANTS] {
            if self.store.records().are_foreign(table).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the ends that other replicas have added to the store, so that their tokens are
    /// rejected here as well, and reports them to the observer. Call it twice a second if other
    /// replicas use the same store, also before [`load_ends`](Self::load_ends) has succeeded. The
    /// clocks of replicas may differ by 5 s.
    ///
    /// # Errors
    /// Fails when the store cannot be read. Ends are then found by the next call that succeeds.
    pub async fn refresh_ends(&self) -> Result<(), StoreError> {
        self.store.refresh_ends().await
    }

    /// Returns the public keys of access tokens.
    pub fn public_keys(&self) -> JwkSet {
        self.keys.public_keys()
    }

    /// Returns the redirect URI to register at a provider.
    pub(crate) fn callback_url(&self, provider: &str) -> String {
        self.settings.redirect_uri(provider)
    }

    pub(crate) fn observe(&self, event: &BrokerEvent<'_>) {
        self.observer.observe(event);
    }

    /// Reports a rejected request.
    pub(crate) fn rejected(
        &self,
        endpoint: &'static str,
        error: &'static str,
        description: &'static str,
    ) {
        self.observe(&BrokerEvent::Rejected {
            endpoint,
            error,
            description,
        });
    }

    /// Logs and reports an error of a provider. `reference` is that of the page or the error that
    /// the user sees because of it.
    pub(crate) fn provider_failed(
        &self,
        provider: &str,
        error: &ProviderError,
        reference: Option<&str>,
    ) {
        if let ProviderError::ApplicationRejected(_) = error {
            let (uri, now) = (self.callback_url(provider), self.clock.monotonic());
            self.application_warnings
                .warn(provider, error, &uri, reference, now);
        } else {
            tracing::warn!(
                provider.name = provider,
                provider.issuer = self.issuer_of(provider),
                error.code = error.code(),
                page.reference = reference,
                "{error}"
            );
        }
        self.observe(&BrokerEvent::ProviderFailed {
            provider,
            code: error.code(),
        });
    }

    fn issuer_of(&self, provider: &str) -> Option<&str> {
        let mut providers = self.providers.iter();
        let found = providers.find(|configured| configured.name() == provider)?;
        Some(found.settings().issuer.as_str())
    }

    /// Logs an error of the store.
    pub(crate) fn store_failed(&self, error: &StoreError) {
        self.store_failed_for(error, None);
    }

    /// As [`store_failed`](Self::store_failed), with the reference that the user sees.
    pub(crate) fn store_failed_for(&self, error: &StoreError, reference: Option<&str>) {
        log_failure(error, reference);
    }

    /// Logs an error of the store, and returns what the client learns.
    pub(crate) fn unavailable(&self, error: StoreError) -> ErrorResponse {
        self.store_failed(&error);
        error.into()
    }
}

/// Revokes the tokens at the provider, and reports the end.
struct Listener {
    providers: Vec<Arc<IdentityProvider>>,
    observer: Arc<dyn BrokerObserver>,
    control: Handle,
}

impl EndListener for Listener {
    fn grant_ended(&self, id: &str, ended: EndedGrant, reason: EndReason) {
        self.observer.observe(&BrokerEvent::GrantEnded {
            grant_id: id,
            owner: ended.terms.as_ref().map(|terms| GrantOwner {
                subject: &terms.subject,
                client_id: &terms.client_id,
            }),
            reason,
        });
        let Some(sign_in) = ended.sign_in else {
            return;
        };
        let mut providers = self.providers.iter();
        if let Some(provider) = providers.find(|provider| *provider.name() == *sign_in.provider) {
            let provider = Arc::clone(provider);
            // The grant has ended whether the provider learns of it or not.
            self.control.spawn(async move {
                if let Err(error) = provider.revoke(&sign_in.tokens()).await {
                    tracing::info!(
                        provider.name = provider.name(),
                        error.code = error.code(),
                        "the provider's token is not revoked: {error}"
                    );
                }
            });
        }
    }

    fn end_not_stored(&self, id: &str, owner: Option<OwnerRecord>, reason: EndReason) {
        self.observer.observe(&BrokerEvent::EndNotStored {
            grant_id: id,
            owner: owner.as_ref().map(OwnerRecord::owner),
            reason,
        });
    }

    fn grant_ended_elsewhere(&self, id: &str, at: UnixTime, end: Option<&SharedGrantEnd>) {
        let owner = end.and_then(|end| end.owner.as_ref());
        self.observer.observe(&BrokerEvent::GrantEndedElsewhere {
            grant_id: id,
            owner: owner.map(OwnerRecord::owner),
            reason: end.map(|end| end.reason),
            at,
        });
    }
}

fn providers(
    settings: &BrokerSettings,
    parts: &BrokerParts,
) -> Result<Vec<Arc<IdentityProvider>>, BrokerError> {
    let pairs = settings.providers.iter().zip(&parts.provider_fetches);
    pairs
        .map(|(provider, fetch)| {
            IdentityProvider::new(
                provider.settings.clone(),
                Arc::clone(fetch),
                Arc::clone(&parts.clock),
                parts.control.clone(),
            )
            .map_err(|error| BrokerError::Provider {
                name: provider.settings.name.clone(),
                error,
            })
        })
        .collect()
}

/// Returns the metadata document (RFC 8414 section 2). `None` if an endpoint has no URL.
fn metadata(settings: &BrokerSettings, base_url: &Url) -> Option<Bytes> {
    let url = |route: Route| base_url.join(route.path()).ok();
    let scopes = settings.resources.iter().map(|resource| &resource.scopes);
    let scopes = scopes.fold(Scopes::default(), |all, more| all.union(more));
    let registration = settings
        .clients
        .registration
        .then(|| url(Route::Register))
        .flatten();
    let introspection = !settings.introspection_clients.is_empty();
    let document = ServerMetadata {
        issuer: &settings.issuer,
        authorization_endpoint: url(Route::Authorize)?,
        token_endpoint: url(Route::Token)?,
        registration_endpoint: registration,
        introspection_endpoint: introspection.then(|| url(Route::Introspect)).flatten(),
        revocation_endpoint: url(Route::Revoke),
        jwks_uri: url(Route::Keys)?,
        grant_types: &[GrantType::AuthorizationCode, GrantType::RefreshToken],
        scopes: &scopes,
        authentication_methods: &Credential::METHODS,
        client_documents: settings.clients.documents,
        // OpenID Connect Discovery requires the list, although no ID tokens are issued.
        id_token_algorithms: &["ES256"],
    };
    Some(document.document().to_json().into())
}

/// Returns the paths of the metadata document: without a path, and with the path of each resource
/// inserted, where clients look that take the resource for the issuer.
fn metadata_paths(settings: &BrokerSettings) -> Vec<Box<str>> {
    let bases = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    let resources = settings
        .resources
        .iter()
        .map(|resource| resource.uri.url().path());
    let suffixes: Vec<&str> = [""]
        .into_iter()
        .chain(resources.filter(|path| *path != "/"))
        .collect();
    bases
        .iter()
        .flat_map(|base| {
            suffixes
                .iter()
                .map(move |suffix| format!("{base}{suffix}").into())
        })
        .collect()
}
