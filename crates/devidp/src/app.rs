//! [`App`]: the parts of the server, for the endpoints.

use std::sync::Arc;

use portcullis_metadata::Issuer;
use tokio::sync::watch;

use crate::{
    authentication::{assertions::Assertions, dpop::DpopProofs},
    authorize::{codes::Codes, tickets::ConsentTickets},
    clients::registry::Clients,
    config::Config,
    control::faults::Faults,
    device::authorizations::DeviceAuthorizations,
    error::DevIdpError,
    keys::Keys,
    logout::Logout,
    metadata::{self, Documents},
    settings::DevIdpSettings,
    token::{access_tokens::AccessTokens, id_tokens::IdTokens, sessions::Sessions},
    users::RemovedUsers,
};

/// The parts of the server. They depend only on the configuration and the keys, not on one another;
/// the endpoints combine them.
pub(crate) struct App {
    pub(crate) config: Arc<Config>,
    pub(crate) keys: Arc<Keys>,
    /// The metadata documents (RFC 8414 section 2).
    pub(crate) metadata: Documents,
    pub(crate) clients: Clients,
    pub(crate) assertions: Assertions,
    pub(crate) dpop: DpopProofs,
    pub(crate) tickets: ConsentTickets,
    pub(crate) codes: Codes,
    pub(crate) devices: DeviceAuthorizations,
    pub(crate) sessions: Sessions,
    pub(crate) access_tokens: AccessTokens,
    pub(crate) id_tokens: IdTokens,
    pub(crate) logout: Logout,
    pub(crate) removed_users: RemovedUsers,
    pub(crate) faults: Faults,
    /// Becomes `true` when the server stops.
    pub(crate) stop: watch::Sender<bool>,
}

impl App {
    /// Creates the parts from validated settings. Fails when a configured client, trusted issuer or
    /// fault is invalid, an HTTP client cannot be created, or the operating
    /// system gives no random bytes.
    pub(crate) fn new(
        settings: DevIdpSettings,
        issuer: Issuer,
        keys: Keys,
    ) -> Result<Self, DevIdpError> {
        let config = Arc::new(Config::new(settings, issuer));
        let keys = Arc::new(keys);
        Ok(Self {
            metadata: metadata::documents(&config),
            clients: Clients::new(&config)?,
            assertions: Assertions::new(&config)?,
            dpop: DpopProofs::new(&config).map_err(|error| DevIdpError::Nonce(error.into()))?,
            tickets: ConsentTickets::new(&config),
            codes: Codes::new(&config),
            devices: DeviceAuthorizations::new(&config),
            sessions: Sessions::new(&config),
            access_tokens: AccessTokens::new(Arc::clone(&config), Arc::clone(&keys)),
            id_tokens: IdTokens::new(Arc::clone(&config), Arc::clone(&keys)),
            logout: Logout::new(&config)?,
            removed_users: RemovedUsers::new(&config),
            faults: Faults::new(&config.settings.faults).map_err(DevIdpError::Fault)?,
            stop: watch::Sender::new(false),
            config,
            keys,
        })
    }
}
