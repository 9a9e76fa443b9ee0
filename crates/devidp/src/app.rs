use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch, UrlPolicy};
use portcullis_jose::{Compact, KeySet};
use portcullis_metadata::{ClientIdUrl, Issuer, unverified_issuer};
use tokio::sync::watch;

use crate::{
    DevIdpError, DevIdpSettings, DocumentFetch, GrantType, TrustedIssuer, assertion,
    client_document::ClientDocuments,
    client_settings::clients,
    clients::{Client, Registered, assertion_algorithms},
    code::IssuedCode,
    consent::Pending,
    dpop::{self, Nonces},
    faults::Faults,
    keys::Keys,
    metadata,
    refresh::Family,
    tables::{Keep, Table},
};

/// What all requests share.
pub(crate) struct App {
    pub(crate) settings: DevIdpSettings,
    pub(crate) issuer: Issuer,
    pub(crate) keys: Keys,
    /// The metadata document (RFC 8414 section 2), the same in all its places.
    pub(crate) metadata: Bytes,
    /// The clients of the settings.
    pub(crate) configured: HashMap<Box<str>, Arc<Client>>,
    /// The keys of the issuers that vouch for others.
    pub(crate) trusted: HashMap<Box<str>, KeySet>,
    /// The clients that registered themselves.
    pub(crate) clients: Table<Registered>,
    /// The clients that publish what they are, where that is taken.
    pub(crate) documents: Option<ClientDocuments>,
    pub(crate) codes: Table<IssuedCode>,
    pub(crate) tickets: Table<Pending>,
    /// The refresh tokens.
    pub(crate) families: Table<Family>,
    /// The `jti` of each access token that was given up.
    pub(crate) revoked: Table<()>,
    /// The `sid` of each session that was ended before its time.
    pub(crate) withdrawn: Table<()>,
    /// Issuer and `jti` of each assertion that counted.
    pub(crate) used_assertions: Table<()>,
    /// Key and `jti` of each DPoP proof that counted.
    pub(crate) used_proofs: Table<()>,
    pub(crate) nonces: Nonces,
    pub(crate) faults: Faults,
    /// Says to all that waits that the server stops.
    pub(crate) stop: watch::Sender<bool>,
}

/// How long a code can be exchanged (RFC 6749 section 4.1.2 recommends 10 minutes at most).
const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// How long a consent page can be answered.
pub(crate) const TICKET_LIFETIME: Duration = Duration::from_secs(600);
/// How long a client that is not used stays registered.
const CLIENT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// How many tokens can be given up, sessions withdrawn, and assertions and proofs used at a time. None is forgotten before it expires: a
/// full table takes no more.
const MAX_SPENT: usize = 10_000;
/// How many codes, consent pages and sessions with refresh tokens are remembered at once; the oldest goes first.
const MAX_OPEN: usize = 1000;

impl App {
    pub(crate) fn new(settings: DevIdpSettings, issuer: Issuer, keys: Keys) -> Result<Self, DevIdpError> {
        fn table<V>(settings: &DevIdpSettings, capacity: usize, lifetime: Duration) -> Table<V> {
            Table::new(capacity, lifetime, Arc::clone(&settings.clock))
        }
        let faults = Faults::default();
        settings.faults.iter().try_for_each(|fault| faults.inject(fault.clone())).map_err(DevIdpError::Fault)?;
        Ok(Self {
            faults,
            stop: watch::Sender::new(false),
            clients: table(&settings, settings.max_clients, CLIENT_LIFETIME),
            documents: documents(&settings, &issuer)?,
            codes: table(&settings, MAX_OPEN, CODE_LIFETIME),
            tickets: table(&settings, MAX_OPEN, TICKET_LIFETIME),
            families: table(&settings, MAX_OPEN, settings.refresh_token_lifetime),
            revoked: table(&settings, MAX_SPENT, settings.access_token_lifetime),
            withdrawn: table(&settings, MAX_SPENT, settings.access_token_lifetime.max(CODE_LIFETIME)),
            used_assertions: table(&settings, MAX_SPENT, assertion::MAX_LIFETIME),
            used_proofs: table(&settings, MAX_SPENT, dpop::REMEMBERED),
            nonces: Nonces::new(Arc::clone(&settings.clock)).map_err(|error| DevIdpError::Keys(error.into()))?,
            metadata: Bytes::from(metadata::document(&settings, &issuer)),
            trusted: trusted(&settings)?,
            configured: clients(&settings.clients, &settings.scopes)?,
            settings,
            issuer,
            keys,
        })
    }

    /// The client with this identifier, from wherever it is known. The error is a sentence for a person.
    pub(crate) async fn client(&self, id: &str) -> Result<Arc<Client>, &'static str> {
        if let Some(client) = self.configured.get(id) {
            return Ok(Arc::clone(client));
        }
        let url = ClientIdUrl::parse_or_loopback_http(id).ok();
        // Identifiers are logged and shown, and queries are not.
        if let (Some(documents), Some(url)) = (&self.documents, url.filter(|url| url.url().query().is_none())) {
            return documents.client(&url).await;
        }
        self.clients.look_up(id, |row| (Arc::clone(&row.client), Keep::AsItWas)).ok_or(
            "The client is not registered here. Registrations are forgotten when this server restarts, and a day after their last use.",
        )
    }

    /// The keys of the issuer that a signed text claims to come from, where it is trusted.
    pub(crate) fn trusted_keys(&self, signed: &Compact<'_>) -> Option<&KeySet> {
        let issuer = unverified_issuer(signed.unverified_payload()).ok()??;
        self.trusted.get(&*issuer)
    }

    /// Whether anybody can use a grant type here.
    pub(crate) fn serves(&self, grant_type: GrantType) -> bool {
        self.settings.grant_types().contains(&grant_type)
    }
}

fn trusted(settings: &DevIdpSettings) -> Result<HashMap<Box<str>, KeySet>, DevIdpError> {
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

fn documents(settings: &DevIdpSettings, issuer: &Issuer) -> Result<Option<ClientDocuments>, DevIdpError> {
    let fetch: Arc<dyn Fetch> = match &settings.client_documents {
        DocumentFetch::Off => return Ok(None),
        DocumentFetch::With(fetch) => Arc::clone(fetch),
        DocumentFetch::Http => Arc::new(HttpFetch::new(FetchSettings::default()).map_err(DevIdpError::Fetch)?),
    };
    // The issuer is loopback, so that loopback documents are fine and private addresses are not.
    let policy = UrlPolicy::peer_of(issuer.url());
    Ok(Some(ClientDocuments::new(fetch, policy, Arc::clone(&settings.clock))))
}
