use serde_json::{Map, Value};

use crate::{
    DocumentError,
    json::{Members, ObjectBuilder},
};

/// What a client says about itself (RFC 7591 section 2): the common part of a registration request, a
/// registration response and a client ID metadata document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientMetadata {
    /// Where authorization responses may go, as text: compared exactly, and not always `http` URLs.
    pub redirect_uris: Vec<String>,
    /// How the client authenticates at the token endpoint; `None` means `client_secret_basic`.
    pub token_endpoint_auth_method: Option<String>,
    /// Values of `grant_type`; empty means `authorization_code`.
    pub grant_types: Vec<String>,
    /// Values of `response_type`; empty means `code`.
    pub response_types: Vec<String>,
    /// A name for people.
    pub client_name: Option<String>,
    /// A page about the client.
    pub client_uri: Option<String>,
    /// A picture.
    pub logo_uri: Option<String>,
    /// Scopes that the client may ask for, separated by spaces.
    pub scope: Option<String>,
    /// Whom to ask about the client.
    pub contacts: Vec<String>,
    /// A page with the terms of service.
    pub tos_uri: Option<String>,
    /// A page on what the client does with the data.
    pub policy_uri: Option<String>,
    /// Where the client publishes its keys.
    pub jwks_uri: Option<String>,
    /// The client's keys themselves, as a JWK set. Neither parsed nor checked.
    pub jwks: Option<Value>,
    /// What the client software is called by its maker.
    pub software_id: Option<String>,
    /// Which version it is.
    pub software_version: Option<String>,
    /// `native` or `web` (OpenID Connect Dynamic Client Registration 1.0 section 2).
    pub application_type: Option<String>,
    /// All other members, language-tagged ones among them.
    pub extra: Map<String, Value>,
}

impl ClientMetadata {
    /// Takes the members out that it knows, and all that are left over.
    pub(crate) fn take(mut members: Members) -> Result<Self, DocumentError> {
        Ok(Self {
            redirect_uris: members.list("redirect_uris")?,
            token_endpoint_auth_method: members.string("token_endpoint_auth_method")?,
            grant_types: members.list("grant_types")?,
            response_types: members.list("response_types")?,
            client_name: members.string("client_name")?,
            client_uri: members.string("client_uri")?,
            logo_uri: members.string("logo_uri")?,
            scope: members.string("scope")?,
            contacts: members.list("contacts")?,
            tos_uri: members.string("tos_uri")?,
            policy_uri: members.string("policy_uri")?,
            jwks_uri: members.string("jwks_uri")?,
            jwks: members.value("jwks"),
            software_id: members.string("software_id")?,
            software_version: members.string("software_version")?,
            application_type: members.string("application_type")?,
            extra: members.rest(),
        })
    }

    pub(crate) fn to_object(&self) -> ObjectBuilder {
        let mut object = ObjectBuilder::over(&self.extra);
        object.list("redirect_uris", &self.redirect_uris);
        object.string("token_endpoint_auth_method", self.token_endpoint_auth_method.as_deref());
        object.list("grant_types", &self.grant_types);
        object.list("response_types", &self.response_types);
        object.string("client_name", self.client_name.as_deref());
        object.string("client_uri", self.client_uri.as_deref());
        object.string("logo_uri", self.logo_uri.as_deref());
        object.string("scope", self.scope.as_deref());
        object.list("contacts", &self.contacts);
        object.string("tos_uri", self.tos_uri.as_deref());
        object.string("policy_uri", self.policy_uri.as_deref());
        object.string("jwks_uri", self.jwks_uri.as_deref());
        object.value("jwks", self.jwks.clone());
        object.string("software_id", self.software_id.as_deref());
        object.string("software_version", self.software_version.as_deref());
        object.string("application_type", self.application_type.as_deref());
        object
    }
}
