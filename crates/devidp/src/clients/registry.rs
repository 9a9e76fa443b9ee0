use std::{collections::HashMap, sync::Arc, time::Duration};

use http::HeaderMap;
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse,
    client::{Client, ClientDirectory, ClientRegistration},
};
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch, UrlPolicy};
use portcullis_metadata::client::{ClientIdUrl, ClientRegistrationResponse};

use crate::{
    clients::{
        document::ClientDocuments, registration_token::RegistrationTokenHash,
        settings::ClientSettingsError,
    },
    config::Config,
    error::DevIdpError,
    settings::DocumentFetch,
    tables::{RowAction, Table, TableFull},
};

/// The clients: configured, registered, or described by their own metadata document.
pub(crate) struct Clients {
    configured: HashMap<Box<str>, Arc<Client>>,
    registered: Table<RegisteredClient>,
    /// `None` if clients with a metadata document are not accepted.
    documents: Option<ClientDocuments>,
}

/// A dynamically registered client.
pub(crate) struct RegisteredClient {
    pub(crate) client: Arc<Client>,
    /// Whether a user has approved the client. Such a client is not evicted.
    pub(crate) is_approved: bool,
    /// The client information response, without the registration access token.
    pub(crate) information: ClientRegistrationResponse,
    /// The hash of the registration access token (RFC 7592).
    pub(crate) registration_token: Option<RegistrationTokenHash>,
}

const UNKNOWN: ErrorResponse = ErrorResponse::new(
    ErrorCode::InvalidClient,
    "The client is not registered here. Registrations are lost when this server restarts, and expire a day after their last use.",
);

/// The time after which an unused registration expires.
const REGISTRATION_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

impl Clients {
    pub(crate) fn new(config: &Config) -> Result<Self, DevIdpError> {
        Ok(Self {
            configured: configured_clients(config)?,
            registered: config.table(config.settings.max_clients, REGISTRATION_LIFETIME),
            documents: client_documents(config)?,
        })
    }

    /// Returns the protected resource with this identifier.
    pub(crate) fn find_resource(&self, id: &str) -> Option<&Client> {
        self.configured
            .get(id)
            .map(|client| &**client)
            .filter(|client| client.may_introspect)
    }

    /// Adds a registered client. If the table is full, it replaces the least recently used one that
    /// no user has approved. Fails when users have approved all clients of a full table.
    pub(crate) fn register(&self, registration: &ClientRegistration) -> Result<(), TableFull> {
        let mut information = registration.information.clone();
        let token = information.registration_access_token.take();
        let id = information.client_id.clone();
        let client = RegisteredClient {
            client: Arc::clone(&registration.client),
            is_approved: false,
            information,
            registration_token: token.as_ref().map(RegistrationTokenHash::of),
        };
        self.registered
            .try_insert(&id, client, |registered| !registered.is_approved)
    }

    /// Calls `f` with a registered client. This does not count as a use, unless `f` returns
    /// [`RowAction::Renew`].
    pub(crate) fn update_registered<R>(
        &self,
        id: &str,
        f: impl FnOnce(&mut RegisteredClient) -> (R, RowAction),
    ) -> Option<R> {
        self.registered.update(id, f)
    }

    /// Records that a user approved the client, if it is registered.
    pub(crate) fn record_approval(&self, id: &str) {
        self.registered.update(id, |registered| {
            (registered.is_approved = true, RowAction::Renew)
        });
    }

    /// Removes a registered client. Returns whether there was one.
    pub(crate) fn remove_registered(&self, id: &str) -> bool {
        self.registered.remove(id)
    }

    /// Returns the identifiers of the registered clients.
    pub(crate) fn registered_ids(&self) -> Vec<String> {
        self.registered
            .collect(|registered| Some(registered.information.client_id.clone()))
    }
}

impl ClientDirectory for Clients {
    /// Finds a client. This counts as a use of a registration.
    async fn find(&self, id: &str, headers: &HeaderMap) -> Result<Arc<Client>, ErrorResponse> {
        if let Some(client) = self.configured.get(id) {
            return Ok(Arc::clone(client));
        }
        let url = ClientIdUrl::parse_or_loopback_http(id).ok();
        // Identifiers are logged and displayed, so URLs with a query are not accepted.
        if let (Some(documents), Some(url)) = (
            &self.documents,
            url.filter(|url| url.url().query().is_none()),
        ) {
            return documents.client(&url, headers).await;
        }
        self.registered
            .update(id, |registered| {
                (Arc::clone(&registered.client), RowAction::Renew)
            })
            .ok_or(UNKNOWN)
    }
}

fn configured_clients(config: &Config) -> Result<HashMap<Box<str>, Arc<Client>>, DevIdpError> {
    let mut clients = HashMap::new();
    for settings in &config.settings.clients {
        let invalid = |problem| DevIdpError::Client {
            id: settings.id.clone(),
            problem,
        };
        let client = settings
            .to_client(&config.settings.scopes)
            .map_err(invalid)?;
        if clients
            .insert(settings.id.as_str().into(), Arc::new(client))
            .is_some()
        {
            return Err(invalid(ClientSettingsError::Twice));
        }
    }
    Ok(clients)
}

fn client_documents(config: &Config) -> Result<Option<ClientDocuments>, DevIdpError> {
    let fetch: Arc<dyn Fetch> = match &config.settings.client_documents {
        DocumentFetch::Off => return Ok(None),
        DocumentFetch::With(fetch) => Arc::clone(fetch),
        DocumentFetch::Http => {
            Arc::new(HttpFetch::new(FetchSettings::default()).map_err(DevIdpError::Fetch)?)
        }
    };
    // The issuer is on loopback, so the policy allows loopback addresses, but no private ones.
    let policy = UrlPolicy::peer_of(config.issuer.url());
    Ok(Some(ClientDocuments::new(
        fetch,
        policy,
        Arc::clone(&config.settings.clock),
    )))
}
