//! Back-channel logout (OpenID Connect Back-Channel Logout 1.0).

use std::sync::Arc;

use portcullis_authorization_server::Grant;
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch};
use url::Url;

use crate::{
    config::Config,
    error::DevIdpError,
    tables::{EVICTING_CAPACITY, Table},
};

/// The sessions of users with clients that have a logout URI.
pub(crate) struct Logout {
    pub(crate) sessions: Table<Session>,
    /// The clients with a logout URI.
    clients: Vec<LogoutClient>,
    /// `None` if no client has a logout URI.
    pub(crate) fetch: Option<Arc<dyn Fetch>>,
}

struct LogoutClient {
    id: Box<str>,
    uri: Url,
}

/// The session of a user with a client.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) id: Box<str>,
    pub(crate) client_id: Box<str>,
    pub(crate) subject: Box<str>,
}

/// Why a client was not told that a user logged out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogoutError {
    /// The user has no session with a client that has a logout URI.
    #[error("the user has no session with a client that has a backchannel_logout_uri")]
    NoSession,
    /// The client answered with an error.
    #[error("the client answered the logout token with status {status}")]
    Status {
        /// The status of the response.
        status: u16,
    },
    /// The client cannot be reached.
    #[error("the client cannot be reached")]
    Unreachable(#[source] portcullis_discovery::FetchError),
    /// The logout token cannot be created.
    #[error("the logout token cannot be created")]
    Token,
}

impl Logout {
    /// Fails when the HTTP client cannot be created.
    pub(crate) fn new(config: &Config) -> Result<Self, DevIdpError> {
        let settings = &config.settings;
        let client = |client: &crate::ClientSettings| {
            let uri = Url::parse(client.backchannel_logout_uri.as_deref()?).ok()?;
            let id = client.id.as_str().into();
            Some(LogoutClient { id, uri })
        };
        let clients: Vec<_> = settings.clients.iter().filter_map(client).collect();
        let fetch = || HttpFetch::new(FetchSettings::default()).map_err(DevIdpError::Fetch);
        let fetch = (!clients.is_empty()).then(fetch).transpose()?;
        Ok(Self {
            sessions: config.table(EVICTING_CAPACITY, settings.refresh_token_lifetime),
            clients,
            fetch: fetch.map(|fetch| Arc::new(fetch) as Arc<dyn Fetch>),
        })
    }

    /// Records the session of a grant if its client has a logout URI.
    pub(crate) fn record(&self, grant: &Grant) {
        if self.uri(&grant.client_id).is_some() {
            let session = Session {
                id: grant.id.clone(),
                client_id: grant.client_id.clone(),
                subject: grant.subject.clone(),
            };
            self.sessions.insert(&grant.id, session);
        }
    }

    /// Returns the logout URI of a client, if it has one.
    pub(crate) fn uri(&self, client_id: &str) -> Option<&Url> {
        let mut clients = self.clients.iter();
        clients
            .find(|client| *client.id == *client_id)
            .map(|client| &client.uri)
    }
}
