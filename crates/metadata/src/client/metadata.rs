//! [`ClientMetadata`]: the metadata that registration and client ID metadata documents share.

use serde_json::{Map, Value};

use crate::json::{DocumentError, Members, ObjectBuilder};

/// Client metadata (RFC 7591 section 2): the common part of registration requests, registration
/// responses and client ID metadata documents.
///
/// Members are checked for their JSON type only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientMetadata {
    /// The redirect URIs. They are strings because they are compared exactly and need not be `http`
    /// URLs.
    pub redirect_uris: Vec<String>,
    /// The authentication method at the token endpoint. `None` means `client_secret_basic`.
    pub token_endpoint_auth_method: Option<String>,
    /// The values of `grant_type` that the client uses. Empty means `authorization_code`.
    pub grant_types: Vec<String>,
    /// The values of `response_type` that the client uses. Empty means `code`.
    pub response_types: Vec<String>,
    /// The name that people see.
    pub client_name: Option<String>,
    /// The URL of a page about the client.
    pub client_uri: Option<String>,
    /// The URL of the client's logo.
    pub logo_uri: Option<String>,
    /// The scopes that the client may request, separated by spaces.
    pub scope: Option<String>,
    /// Contacts for questions about the client, usually email addresses.
    pub contacts: Vec<String>,
    /// The URL of the terms of service.
    pub tos_uri: Option<String>,
    /// The URL of the policy on how the client uses data.
    pub policy_uri: Option<String>,
    /// The URL of the client's JWK set.
    pub jwks_uri: Option<String>,
    /// The client's JWK set by value. It is neither parsed nor checked.
    pub jwks: Option<Value>,
    /// The identifier of the client software, assigned by its developer.
    pub software_id: Option<String>,
    /// The version of the client software.
    pub software_version: Option<String>,
    /// `native` or `web` (OpenID Connect Dynamic Client Registration 1.0 section 2).
    pub application_type: Option<String>,
    /// All other members, including language-tagged ones.
    pub extra: Map<String, Value>,
}

impl ClientMetadata {
    /// Takes the known members; the remaining ones become `extra`.
    pub(crate) fn from_members(mut members: Members) -> Result<Self, DocumentError> {
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
            extra: members.remaining(),
        })
    }

    /// Returns the members as an object, to which the caller adds its own.
    pub(crate) fn to_object(&self) -> ObjectBuilder {
        let Self {
            redirect_uris,
            token_endpoint_auth_method,
            grant_types,
            response_types,
            client_name,
            client_uri,
            logo_uri,
            scope,
            contacts,
            tos_uri,
            policy_uri,
            jwks_uri,
            jwks,
            software_id,
            software_version,
            application_type,
            extra,
        } = self;
        let mut object = ObjectBuilder::new(extra);
        object.list("redirect_uris", redirect_uris);
        object.string(
            "token_endpoint_auth_method",
            token_endpoint_auth_method.as_deref(),
        );
        object.list("grant_types", grant_types);
        object.list("response_types", response_types);
        object.string("client_name", client_name.as_deref());
        object.string("client_uri", client_uri.as_deref());
        object.string("logo_uri", logo_uri.as_deref());
        object.string("scope", scope.as_deref());
        object.list("contacts", contacts);
        object.string("tos_uri", tos_uri.as_deref());
        object.string("policy_uri", policy_uri.as_deref());
        object.string("jwks_uri", jwks_uri.as_deref());
        object.value("jwks", jwks.clone());
        object.string("software_id", software_id.as_deref());
        object.string("software_version", software_version.as_deref());
        object.string("application_type", application_type.as_deref());
        object
    }
}
