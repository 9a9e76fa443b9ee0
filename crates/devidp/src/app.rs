use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use portcullis_metadata::Issuer;

use crate::{
    DevIdpSettings,
    clients::{Client, Registered},
    code::IssuedCode,
    consent::Pending,
    keys::Keys,
    tables::{Keep, Table},
};

/// What all requests share.
pub(crate) struct App {
    pub(crate) settings: DevIdpSettings,
    pub(crate) issuer: Issuer,
    pub(crate) keys: Keys,
    /// The metadata document (RFC 8414 section 2), the same in all its places.
    pub(crate) metadata: Bytes,
    pub(crate) clients: Table<Registered>,
    pub(crate) codes: Table<IssuedCode>,
    pub(crate) tickets: Table<Pending>,
    /// The `jti` of each access token that was given up.
    pub(crate) revoked: Table<()>,
}

/// How long a code can be exchanged (RFC 6749 section 4.1.2 recommends 10 minutes at most).
const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// How long a consent page can be answered.
pub(crate) const TICKET_LIFETIME: Duration = Duration::from_secs(600);
/// How long a client that is not used stays registered.
const CLIENT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// How many tokens can be given up at a time. None is forgotten before it expires: a full table takes no more.
const MAX_REVOKED: usize = 10_000;
/// How many codes and how many consent pages are remembered at once; the oldest goes first.
const MAX_OPEN: usize = 1000;

impl App {
    pub(crate) fn new(settings: DevIdpSettings, issuer: Issuer, keys: Keys, metadata: Bytes) -> Self {
        let clock = &settings.clock;
        Self {
            clients: Table::new(settings.max_clients, CLIENT_LIFETIME, Arc::clone(clock)),
            codes: Table::new(MAX_OPEN, CODE_LIFETIME, Arc::clone(clock)),
            tickets: Table::new(MAX_OPEN, TICKET_LIFETIME, Arc::clone(clock)),
            revoked: Table::new(MAX_REVOKED, settings.access_token_lifetime, Arc::clone(clock)),
            settings,
            issuer,
            keys,
            metadata,
        }
    }

    /// The client with this identifier, where it is registered.
    pub(crate) fn client(&self, id: &str) -> Option<Arc<Client>> {
        self.clients.look_up(id, |row| (Arc::clone(&row.client), Keep::AsItWas))
    }
}
