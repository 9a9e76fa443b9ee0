//! [`App`]: the state that all requests share.

use std::{collections::HashMap, sync::Arc, time::Duration};

use portcullis_discovery::{Fetch, FetchSettings, HttpFetch, UrlPolicy};
use portcullis_jose::{CompactJws, KeySet};
use portcullis_metadata::{ClientIdUrl, Issuer, unverified_issuer};
use tokio::sync::watch;

use crate::{
    authentication::{
        assertion,
        dpop::{self, Nonces},
    },
    authorize::{code::IssuedCode, consent::PendingConsent},
    clients::{
        Client, Registered, assertion_algorithms, document::ClientDocuments, grant_type::GrantType,
        settings::configured_clients,
    },
    control::faults::Faults,
    device::{self, DeviceAuthorization},
    error::DevIdpError,
    keys::Keys,
    metadata::{self, Documents},
    providers::profile::Profile,
    settings::{DevIdpSettings, DocumentFetch, TrustedIssuer},
    tables::{RowAction, Table},
    token::{access_token::OpaqueToken, refresh_token::TokenFamily, session},
};

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) settings: DevIdpSettings,
    /// The behaviour of the imitated provider.
    pub(crate) profile: &'static Profile,
    pub(crate) issuer: Issuer,
    /// The issuer in tokens, if it is not `issuer`.
    pub(crate) token_issuer: Option<String>,
    pub(crate) keys: Keys,
    /// The metadata documents (RFC 8414 section 2).
    pub(crate) metadata: Documents,
    /// The clients from the settings.
    pub(crate) configured: HashMap<Box<str>, Arc<Client>>,
    /// The keys of the trusted issuers, by issuer.
    pub(crate) trusted: HashMap<Box<str>, KeySet>,
    /// The dynamically registered clients.
    pub(crate) clients: Table<Registered>,
    /// The clients with a metadata document, unless they are disabled.
    pub(crate) documents: Option<ClientDocuments>,
    pub(crate) codes: Table<IssuedCode>,
    pub(crate) tickets: Table<PendingConsent>,
    /// The refresh tokens, by handle.
    pub(crate) token_families: Table<TokenFamily>,
    /// The opaque access tokens, by handle.
    pub(crate) opaque_tokens: Table<OpaqueToken>,
    /// The device authorizations, by handle.
    pub(crate) device_authorizations: Table<DeviceAuthorization>,
    /// The handle of each device authorization that is not answered, by user code.
    pub(crate) user_codes: Table<Box<str>>,
    /// The wrong user codes of the last minute, by a random key.
    pub(crate) wrong_user_codes: Table<()>,
    /// The client and the user of each approval, if the imitated provider distinguishes the first one.
    pub(crate) approved: Table<()>,
    /// The `jti` of each revoked access token.
    pub(crate) revoked: Table<()>,
    /// The `sid` of each withdrawn session.
    pub(crate) withdrawn: Table<()>,
    /// The issuer and `jti` of each used assertion.
    pub(crate) used_assertions: Table<()>,
    /// The key thumbprint and `jti` of each used DPoP proof.
    pub(crate) used_proofs: Table<()>,
    pub(crate) nonces: Nonces,
    pub(crate) faults: Faults,
    /// Becomes `true` when the server stops.
    pub(crate) stop: watch::Sender<bool>,
}

/// The lifetime of a code. RFC 6749 section 4.1.2 recommends at most 10 minutes.
const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// The time in which a consent page can be answered.
pub(crate) const TICKET_LIFETIME: Duration = Duration::from_secs(600);
/// The time after which an unused registration expires.
const CLIENT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum number of entries in each table of revoked tokens, withdrawn sessions, and used assertions and proofs.
/// Entries are never evicted before they expire.
const MAX_REMEMBERED: usize = 10_000;
/// The maximum number of codes, of consent pages, of device authorizations, of opaque access tokens, and of sessions with
/// refresh tokens. The oldest is evicted first.
const MAX_OPEN: usize = 1000;

/// The maximum number of wrong user codes in a minute.
const MAX_WRONG_USER_CODES: usize = 100;
const WRONG_USER_CODE_LIFETIME: Duration = Duration::from_secs(60);

impl App {
    pub(crate) fn new(settings: DevIdpSettings, issuer: Issuer, keys: Keys) -> Result<Self, DevIdpError> {
        fn table<V>(settings: &DevIdpSettings, capacity: usize, lifetime: Duration) -> Table<V> {
            Table::new(capacity, lifetime, Arc::clone(&settings.clock))
        }
        let profile = settings.profile();
        let faults = Faults::default();
        settings.faults.iter().try_for_each(|fault| faults.inject(fault.clone())).map_err(DevIdpError::Fault)?;
        Ok(Self {
            faults,
            stop: watch::Sender::new(false),
            clients: table(&settings, settings.max_clients, CLIENT_LIFETIME),
            documents: client_documents(&settings, &issuer)?,
            codes: table(&settings, MAX_OPEN, CODE_LIFETIME),
            tickets: table(&settings, MAX_OPEN, TICKET_LIFETIME),
            token_families: table(&settings, MAX_OPEN, settings.refresh_token_lifetime),
            opaque_tokens: table(&settings, MAX_OPEN, settings.access_token_lifetime),
            device_authorizations: table(&settings, MAX_OPEN, device::ENTRY_LIFETIME),
            user_codes: table(&settings, MAX_OPEN, device::ENTRY_LIFETIME),
            wrong_user_codes: table(&settings, MAX_WRONG_USER_CODES, WRONG_USER_CODE_LIFETIME),
            approved: table(&settings, MAX_REMEMBERED, settings.refresh_token_lifetime),
            revoked: table(&settings, MAX_REMEMBERED, settings.access_token_lifetime),
            withdrawn: table(&settings, MAX_REMEMBERED, settings.access_token_lifetime.max(CODE_LIFETIME)),
            used_assertions: table(&settings, MAX_REMEMBERED, assertion::MAX_LIFETIME),
            used_proofs: table(&settings, MAX_REMEMBERED, dpop::PROOF_RETENTION),
            nonces: Nonces::new(Arc::clone(&settings.clock)).map_err(|error| DevIdpError::Keys(error.into()))?,
            metadata: metadata::documents(&settings, &issuer, profile),
            token_issuer: profile.token_issuer_path.map(|path| format!("{}{path}", metadata::origin(&issuer))),
            profile,
            trusted: import_trusted_keys(&settings)?,
            configured: configured_clients(&settings.clients, &settings.scopes)?,
            settings,
            issuer,
            keys,
        })
    }

    /// Returns the client with this identifier: configured, registered, or from its metadata document. The error is a
    /// sentence for the user.
    pub(crate) async fn client(&self, id: &str) -> Result<Arc<Client>, &'static str> {
        if let Some(client) = self.configured.get(id) {
            return Ok(Arc::clone(client));
        }
        let url = ClientIdUrl::parse_or_loopback_http(id).ok();
        // Identifiers are logged and displayed, so URLs with a query are not accepted.
        if let (Some(documents), Some(url)) = (&self.documents, url.filter(|url| url.url().query().is_none())) {
            return documents.client(&url).await;
        }
        self.clients.update(id, |row| (Arc::clone(&row.client), RowAction::Keep)).ok_or(
            "The client is not registered here. Registrations are lost when this server restarts, and expire a day after their last use.",
        )
    }

    /// Returns the keys of the issuer of a token that is not verified yet, if the issuer is trusted.
    pub(crate) fn trusted_keys(&self, token: &CompactJws<'_>) -> Option<&KeySet> {
        let issuer = unverified_issuer(token.unverified_payload()).ok()??;
        self.trusted.get(&*issuer)
    }

    /// Forgets a registered client, its codes, and its sessions with refresh tokens, which end. Returns whether the client
    /// was registered. Access tokens of other sessions stay active until they expire.
    pub(crate) fn forget_client(&self, id: &str) -> bool {
        let is_removed = self.clients.update(id, |_| ((), RowAction::Remove)).is_some();
        if is_removed {
            self.codes.remove_if(|code| code.client_id() == id);
            self.device_authorizations.remove_if(|authorization| *authorization.client_id == *id);
            for session_id in self
                .token_families
                .collect(|family| (*family.session.client_id == *id).then(|| family.session.id.clone()))
            {
                session::withdraw(self, &session_id);
            }
        }
        is_removed
    }

    /// Returns whether the server supports a grant type.
    pub(crate) fn supports(&self, grant_type: GrantType) -> bool {
        self.settings.grant_types().contains(&grant_type)
    }
}

fn import_trusted_keys(settings: &DevIdpSettings) -> Result<HashMap<Box<str>, KeySet>, DevIdpError> {
    let mut trusted = HashMap::new();
    for TrustedIssuer { issuer, keys } in &settings.trusted_issuers {
        let unusable = || DevIdpError::TrustedIssuer { issuer: issuer.clone() };
        let (keys, _) = KeySet::from_jwks(keys, assertion_algorithms()).map_err(|_| unusable())?;
        if keys.is_empty() || trusted.insert(issuer.as_str().into(), keys).is_some() {
            return Err(unusable());
        }
    }
    Ok(trusted)
}

fn client_documents(settings: &DevIdpSettings, issuer: &Issuer) -> Result<Option<ClientDocuments>, DevIdpError> {
    let fetch: Arc<dyn Fetch> = match &settings.client_documents {
        DocumentFetch::Off => return Ok(None),
        DocumentFetch::With(fetch) => Arc::clone(fetch),
        DocumentFetch::Http => Arc::new(HttpFetch::new(FetchSettings::default()).map_err(DevIdpError::Fetch)?),
    };
    // The issuer is on loopback, so the policy allows loopback addresses, but no private ones.
    let policy = UrlPolicy::peer_of(issuer.url());
    Ok(Some(ClientDocuments::new(fetch, policy, Arc::clone(&settings.clock))))
}
