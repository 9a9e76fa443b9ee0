//! [`AuthorizerSettings`].

use portcullis_metadata::{ClientIdUrl, Issuer, ProtectedResourceMetadata, Scopes};

use crate::{ClientCredentials, ClientInformation, CredentialStore, ProviderSettings, TokenAuthMethod};

/// What an [`Authorizer`](crate::Authorizer) may use beside what it finds out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorizerSettings {
    /// The name under which the client registers. `Portcullis` by default.
    pub client_name: String,
    /// Credentials that were registered before. When there are any, no other authorization server is used.
    pub credentials: Vec<ClientCredentials>,
    /// A client that was registered before, when nobody knows at which authorization server: the one that is used
    /// first. It is offered to no other for this authorizer's life. Since the resource names that server, give
    /// [`credentials`](Self::credentials), or [`authorization_server`](Self::authorization_server), where the client
    /// has a secret and the resource is not trusted with it.
    pub client: Option<ClientInformation>,
    /// The URL of this client's metadata document (see [`client_id_metadata_document`](crate::client_id_metadata_document)). It is used with
    /// authorization servers that support it, in place of a registration.
    pub client_id_url: Option<ClientIdUrl>,
    /// How the client authenticates at the token endpoint. `None` by default: the registration response decides, then
    /// the authorization server's list, in the order `none`, post, basic. If the server then rejects the client, a
    /// secret is sent once by the other listed method. With a value, that method is requested and used, and no other is
    /// tried.
    pub token_auth_method: Option<TokenAuthMethod>,
    /// Whether to register again although a registration is stored. `false` by default. A client that a person named
    /// before is asked for again. Brought credentials and [`client_id_url`](Self::client_id_url) are not affected.
    pub fresh_registration: bool,
    /// The authorization server to use, of those that the resource lists. By default the first that credentials are
    /// there for, else the first.
    pub authorization_server: Option<Issuer>,
    /// The scopes to ask for, in place of what the challenge and the resource's metadata name. Scopes that a later
    /// challenge wants are added.
    pub scopes: Option<Scopes>,
    /// Whether [`scopes`](Self::scopes) are the most that is ever requested: scopes that a later challenge wants, and
    /// those of an earlier sign-in, are not added. False by default. It has no effect without `scopes`.
    pub scopes_are_limit: bool,
    /// The resource's metadata, for resources that publish none.
    pub resource_metadata: Option<ProtectedResourceMetadata>,
    /// Whether what a resource names may be at private addresses. Not by default.
    pub private_addresses: bool,
    /// Whether to accept a resource whose path is only a prefix of the start URL's. A token for it also opens the other
    /// paths below the resource, and the server at the start URL could use it there. When false, which is the default,
    /// the person is asked ([`Interaction::accept_broader_resource`](crate::Interaction::accept_broader_resource)), and
    /// without a person there is no token ([`ClientError::BroaderResource`](crate::ClientError::BroaderResource)).
    /// [`resource_metadata`](Self::resource_metadata) needs no acceptance.
    pub accept_broader_resource: bool,
    /// Whether to go the ways of the 2025-03-26 revision where a resource publishes no metadata: its own origin is
    /// taken for the authorization server, whose endpoints are `/authorize`, `/token` and `/register` when it publishes
    /// none either. Not by default.
    pub revision_2025_03_26: bool,
    /// How requests differ from MCP's profile. Not at all by default, except for known issuers.
    pub provider: ProviderSettings,
    /// Where tokens and registrations are kept. In memory by default.
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
            accept_broader_resource: false,
            revision_2025_03_26: false,
            provider: ProviderSettings::default(),
            store: CredentialStore::in_memory(),
        }
    }
}
