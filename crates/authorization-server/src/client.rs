//! Clients: who they are, what they may do, and how they introduce themselves.

mod client_id;
mod credential;
mod directory;
mod document;
mod grant_type;
mod known;
mod metadata;
mod new_client;
mod new_credential;
mod redirect_policy;
mod redirect_uri;
mod registration_rules;
mod secret_hash;
mod stored_client;

pub use client_id::derive_client_id;
pub use credential::{Credential, SecretMethod, assertion_algorithms};
pub use directory::ClientDirectory;
pub use document::{ClientDocumentError, DocumentLimits, FetchedClient, fetch_client_document};
pub use grant_type::GrantType;
pub use known::{KNOWN_REDIRECTS, KnownRedirect};
pub use metadata::parse_registration;
pub use new_client::{ClientRegistration, NewClient};
pub use redirect_policy::{RedirectHost, RedirectHostError, RedirectHosts, RedirectPolicy};
pub use redirect_uri::{RedirectUri, RedirectUriError};
pub use registration_rules::RegistrationRules;
pub use secret_hash::SecretHash;
pub use stored_client::{StoredClient, StoredClientError, StoredCredential};

use portcullis_metadata::Scopes;

/// A client.
#[derive(Debug)]
pub struct Client {
    /// The name on the consent page.
    pub name: Option<Box<str>>,
    /// The redirect URIs that the client registered.
    pub redirect_uris: Vec<RedirectUri>,
    /// How the client authenticates.
    pub credential: Credential,
    /// The grant types that the client registered.
    pub grant_types: Vec<GrantType>,
    /// The scopes that the client may request. `None` means all scopes of the server.
    pub scopes: Option<Scopes>,
    /// Whether the client is a protected resource that may introspect tokens.
    pub may_introspect: bool,
    /// Whether the client is described by the metadata document at its identifier.
    pub is_document: bool,
}

impl Client {
    /// Returns whether the client registered a grant type.
    pub fn may_use(&self, grant_type: GrantType) -> bool {
        self.grant_types.contains(&grant_type)
    }
}
