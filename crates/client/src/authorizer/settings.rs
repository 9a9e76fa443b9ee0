//! [`AuthorizerSettings`]: the settings of an authorizer.

use portcullis_metadata::{Issuer, ProtectedResourceMetadata, Scopes, client::ClientIdUrl};

use crate::{
    BroaderResource, ClientCredentials, ClientInformation, CredentialStore, ProviderSettings,
    TokenAuthMethod,
};

/// The settings of an [`Authorizer`](crate::Authorizer).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorizerSettings {
    /// The client name for registrations. `Portcullis` by default.
    pub client_name: String,
    /// Credentials of clients that are already registered. If there are any, no other authorization
    /// server is used.
    pub credentials: Vec<ClientCredentials>,
    /// A client that is already registered at an unknown authorization server. At its first use for
    /// a start URL, it is bound to the server that the resource names, in the
    /// [`store`](Self::store), and is never sent to another one
    /// ([`ClientError::ClientOfOtherServer`](crate::ClientError::ClientOfOtherServer)), unless
    /// [`authorization_server`](Self::authorization_server) names that. The resource chooses the
    /// first server: if the client has a secret that an untrusted resource must not redirect, use
    /// [`credentials`](Self::credentials) or [`authorization_server`](Self::authorization_server).
    pub client: Option<ClientInformation>,
    /// The URL of this client's metadata document (see
    /// [`client_id_metadata_document`](crate::registration::client_id_metadata_document)). It
    /// replaces registration at authorization servers that support it.
    pub client_id_url: Option<ClientIdUrl>,
    /// How the client authenticates at the token endpoint. `None` by default: the registration
    /// response decides, then the authorization server's list, in the order `none`, post, basic. If
    /// the server then rejects the client, a secret is sent once by the other listed method. With a
    /// value, that method is requested and used, and no other is tried.
    pub token_auth_method: Option<TokenAuthMethod>,
    /// Whether to register again although a registration is stored. `false` by default. A client
    /// that the user entered earlier is asked for again. Configured credentials and
    /// [`client_id_url`](Self::client_id_url) are not affected.
    pub fresh_registration: bool,
    /// The authorization server to use; the resource must list it. By default, the first for which
    /// there are credentials, else the one that [`client`](Self::client) is bound to, else the
    /// first.
    pub authorization_server: Option<Issuer>,
    /// The scopes to request instead of those of the challenge and of the resource's metadata.
    /// Scopes of a later challenge are added.
    pub scopes: Option<Scopes>,
    /// Whether [`scopes`](Self::scopes) limits all requests: scopes of a later challenge or of an
    /// earlier sign-in are not added. False by default. It has no effect without `scopes`.
    pub scopes_are_limit: bool,
    /// The resource's metadata, for resources that do not publish it.
    pub resource_metadata: Option<ProtectedResourceMetadata>,
    /// Whether the URLs in a resource's metadata can be at private addresses. False by default.
    pub private_addresses: bool,
    /// Which resources are accepted whose path is only a prefix of the start URL's. By default
    /// those that the whole host publishes. [`resource_metadata`](Self::resource_metadata) needs no
    /// acceptance.
    pub broader_resource: BroaderResource,
    /// Whether to use the defaults of the 2025-03-26 revision for a resource that publishes no
    /// metadata: its origin is the authorization server, with the endpoints `/authorize`, `/token`
    /// and `/register` if that publishes no metadata either. False by default.
    pub revision_2025_03_26: bool,
    /// How requests differ from MCP's profile. By default they differ only for known issuers.
    pub provider: ProviderSettings,
    /// The store for tokens and registrations. In memory by default.
    pub store: CredentialStore,
}

impl Default for AuthorizerSettings {
    fn default() -> Self {
        Self {
            client_name: "Portcullis".into(),
            credentials: Vec::new(),
            client: None,
            client_id_url: None,
            token_auth_method: None,
            fresh_registration: false,
            authorization_server: None,
            scopes: None,
            scopes_are_limit: false,
            resource_metadata: None,
            private_addresses: false,
            broader_resource: BroaderResource::default(),
            revision_2025_03_26: false,
            provider: ProviderSettings::default(),
            store: CredentialStore::in_memory(),
        }
    }
}
