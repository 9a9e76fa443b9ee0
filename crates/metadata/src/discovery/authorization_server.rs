//! [`AuthorizationServerMetadata`]: the metadata document of an authorization server.

use serde_json::{Map, Value};
use url::Url;

use crate::{
    identifier::Issuer,
    json::{DocumentError, Members, ObjectBuilder},
};

/// The metadata document of an authorization server (RFC 8414 section 2) or OpenID provider.
///
/// Each member of RFC 8414 has a field, and so do the members of RFC 9126, RFC 9207 and the client
/// ID metadata document draft that clients and resources need. All other members, including those
/// of OpenID Connect, are in [`extra`](Self::extra).
///
/// Parsing and serializing preserves every member, known or not, with these exceptions. A known
/// member that is `null` counts as missing. Members with an empty array are omitted (section 3.2),
/// and so are the two flags when they are `false`, their default. Endpoints are written as [`Url`]
/// normalizes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationServerMetadata {
    /// The server's issuer identifier.
    pub issuer: Issuer,
    /// The authorization endpoint, where the user signs in and consents.
    pub authorization_endpoint: Option<Url>,
    /// The token endpoint, where a client exchanges a code or refresh token for tokens.
    pub token_endpoint: Option<Url>,
    /// The registration endpoint (RFC 7591).
    pub registration_endpoint: Option<Url>,
    /// The introspection endpoint, where resources query a token's state (RFC 7662).
    pub introspection_endpoint: Option<Url>,
    /// The revocation endpoint (RFC 7009).
    pub revocation_endpoint: Option<Url>,
    /// The pushed authorization request endpoint (RFC 9126).
    pub pushed_authorization_request_endpoint: Option<Url>,
    /// The URL of the server's JWK set.
    pub jwks_uri: Option<Url>,
    /// The supported values of `response_type`. Empty if the document has none, although RFC 8414
    /// requires the member.
    pub response_types_supported: Vec<String>,
    /// The supported values of `response_mode`. `None` means `query` and `fragment`.
    pub response_modes_supported: Option<Vec<String>>,
    /// The supported values of `grant_type`. `None` means `authorization_code` and `implicit`.
    pub grant_types_supported: Option<Vec<String>>,
    /// The scopes that clients may request. `None` means that the server does not publish them.
    pub scopes_supported: Option<Vec<String>>,
    /// The supported PKCE methods. `None` means that the server does not support PKCE.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// The client authentication methods of the token endpoint. `None` means `client_secret_basic`.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The signature algorithms of client assertions at the token endpoint.
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The authentication methods of the introspection endpoint. `None` means that the server does
    /// not publish them.
    pub introspection_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The signature algorithms of client assertions at the introspection endpoint.
    pub introspection_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The client authentication methods of the revocation endpoint. `None` means
    /// `client_secret_basic`.
    pub revocation_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The signature algorithms of client assertions at the revocation endpoint.
    pub revocation_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The URL of the documentation for developers.
    pub service_documentation: Option<String>,
    /// The URL of the policy on how clients may use the data.
    pub op_policy_uri: Option<String>,
    /// The URL of the terms of service.
    pub op_tos_uri: Option<String>,
    /// The languages of the user interface (BCP 47 tags).
    pub ui_locales_supported: Option<Vec<String>>,
    /// Whether every authorization response has an `iss` parameter (RFC 9207 section 3). Defaults
    /// to `false`.
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a client identifier may be the URL of a client ID metadata document. Defaults to
    /// `false`.
    pub client_id_metadata_document_supported: bool,
    /// The same metadata as a signed JWT. It is kept but not verified.
    pub signed_metadata: Option<String>,
    /// All other members.
    pub extra: Map<String, Value>,
}

impl AuthorizationServerMetadata {
    /// Creates metadata that has only an issuer.
    pub fn new(issuer: Issuer) -> Self {
        Self {
            issuer,
            authorization_endpoint: None,
            token_endpoint: None,
            registration_endpoint: None,
            introspection_endpoint: None,
            revocation_endpoint: None,
            pushed_authorization_request_endpoint: None,
            jwks_uri: None,
            response_types_supported: Vec::new(),
            response_modes_supported: None,
            grant_types_supported: None,
            scopes_supported: None,
            code_challenge_methods_supported: None,
            token_endpoint_auth_methods_supported: None,
            token_endpoint_auth_signing_alg_values_supported: None,
            introspection_endpoint_auth_methods_supported: None,
            introspection_endpoint_auth_signing_alg_values_supported: None,
            revocation_endpoint_auth_methods_supported: None,
            revocation_endpoint_auth_signing_alg_values_supported: None,
            service_documentation: None,
            op_policy_uri: None,
            op_tos_uri: None,
            ui_locales_supported: None,
            authorization_response_iss_parameter_supported: false,
            client_id_metadata_document_supported: false,
            signed_metadata: None,
            extra: Map::new(),
        }
    }

    /// Parses a document.
    ///
    /// Does not check that `issuer` is the expected issuer (RFC 8414 section 3.3). Accepts `http`
    /// endpoints on any host: the caller decides which addresses may be called.
    ///
    /// # Errors
    /// Fails if the document is not a JSON object without duplicate members, `issuer` is missing or
    /// not an issuer identifier, an endpoint is not an absolute `http` or `https` URL or has a
    /// fragment, or a known member has the wrong type.
    pub fn parse(document: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(document)?;
        let issuer = members.required_string("issuer")?;
        Ok(Self {
            issuer: Issuer::parse(&issuer).map_err(|reason| DocumentError::Issuer {
                member: "issuer",
                reason,
            })?,
            authorization_endpoint: members.endpoint("authorization_endpoint")?,
            token_endpoint: members.endpoint("token_endpoint")?,
            registration_endpoint: members.endpoint("registration_endpoint")?,
            introspection_endpoint: members.endpoint("introspection_endpoint")?,
            revocation_endpoint: members.endpoint("revocation_endpoint")?,
            pushed_authorization_request_endpoint: members
                .endpoint("pushed_authorization_request_endpoint")?,
            jwks_uri: members.endpoint("jwks_uri")?,
            response_types_supported: members.list("response_types_supported")?,
            response_modes_supported: members.strings("response_modes_supported")?,
            grant_types_supported: members.strings("grant_types_supported")?,
            scopes_supported: members.strings("scopes_supported")?,
            code_challenge_methods_supported: members
                .strings("code_challenge_methods_supported")?,
            token_endpoint_auth_methods_supported: members
                .strings("token_endpoint_auth_methods_supported")?,
            token_endpoint_auth_signing_alg_values_supported: members
                .strings("token_endpoint_auth_signing_alg_values_supported")?,
            introspection_endpoint_auth_methods_supported: members
                .strings("introspection_endpoint_auth_methods_supported")?,
            introspection_endpoint_auth_signing_alg_values_supported: members
                .strings("introspection_endpoint_auth_signing_alg_values_supported")?,
            revocation_endpoint_auth_methods_supported: members
                .strings("revocation_endpoint_auth_methods_supported")?,
            revocation_endpoint_auth_signing_alg_values_supported: members
                .strings("revocation_endpoint_auth_signing_alg_values_supported")?,
            service_documentation: members.string("service_documentation")?,
            op_policy_uri: members.string("op_policy_uri")?,
            op_tos_uri: members.string("op_tos_uri")?,
            ui_locales_supported: members.strings("ui_locales_supported")?,
            authorization_response_iss_parameter_supported: members
                .boolean("authorization_response_iss_parameter_supported")?
                .unwrap_or(false),
            client_id_metadata_document_supported: members
                .boolean("client_id_metadata_document_supported")?
                .unwrap_or(false),
            signed_metadata: members.string("signed_metadata")?,
            extra: members.remaining(),
        })
    }

    /// Serializes the document. The members are in alphabetical order, unless the feature
    /// `preserve_order` of `serde_json` is on in the build.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            issuer,
            authorization_endpoint,
            token_endpoint,
            registration_endpoint,
            introspection_endpoint,
            revocation_endpoint,
            pushed_authorization_request_endpoint,
            jwks_uri,
            response_types_supported,
            response_modes_supported,
            grant_types_supported,
            scopes_supported,
            code_challenge_methods_supported,
            token_endpoint_auth_methods_supported,
            token_endpoint_auth_signing_alg_values_supported,
            introspection_endpoint_auth_methods_supported,
            introspection_endpoint_auth_signing_alg_values_supported,
            revocation_endpoint_auth_methods_supported,
            revocation_endpoint_auth_signing_alg_values_supported,
            service_documentation,
            op_policy_uri,
            op_tos_uri,
            ui_locales_supported,
            authorization_response_iss_parameter_supported,
            client_id_metadata_document_supported,
            signed_metadata,
            extra,
        } = self;
        let mut object = ObjectBuilder::for_metadata(extra);
        object.string("issuer", Some(issuer.as_str()));
        object.url("authorization_endpoint", authorization_endpoint.as_ref());
        object.url("token_endpoint", token_endpoint.as_ref());
        object.url("registration_endpoint", registration_endpoint.as_ref());
        object.url("introspection_endpoint", introspection_endpoint.as_ref());
        object.url("revocation_endpoint", revocation_endpoint.as_ref());
        object.url(
            "pushed_authorization_request_endpoint",
            pushed_authorization_request_endpoint.as_ref(),
        );
        object.url("jwks_uri", jwks_uri.as_ref());
        object.list("response_types_supported", response_types_supported);
        for (member, entries) in [
            ("response_modes_supported", response_modes_supported),
            ("grant_types_supported", grant_types_supported),
            ("scopes_supported", scopes_supported),
            (
                "code_challenge_methods_supported",
                code_challenge_methods_supported,
            ),
            (
                "token_endpoint_auth_methods_supported",
                token_endpoint_auth_methods_supported,
            ),
            (
                "token_endpoint_auth_signing_alg_values_supported",
                token_endpoint_auth_signing_alg_values_supported,
            ),
            (
                "introspection_endpoint_auth_methods_supported",
                introspection_endpoint_auth_methods_supported,
            ),
            (
                "introspection_endpoint_auth_signing_alg_values_supported",
                introspection_endpoint_auth_signing_alg_values_supported,
            ),
            (
                "revocation_endpoint_auth_methods_supported",
                revocation_endpoint_auth_methods_supported,
            ),
            (
                "revocation_endpoint_auth_signing_alg_values_supported",
                revocation_endpoint_auth_signing_alg_values_supported,
            ),
            ("ui_locales_supported", ui_locales_supported),
        ] {
            object.optional_list(member, entries.as_ref());
        }
        object.string("service_documentation", service_documentation.as_deref());
        object.string("op_policy_uri", op_policy_uri.as_deref());
        object.string("op_tos_uri", op_tos_uri.as_deref());
        object.boolean(
            "authorization_response_iss_parameter_supported",
            authorization_response_iss_parameter_supported.then_some(true),
        );
        object.boolean(
            "client_id_metadata_document_supported",
            client_id_metadata_document_supported.then_some(true),
        );
        object.string("signed_metadata", signed_metadata.as_deref());
        object.into_json()
    }
}

#[cfg(test)]
mod tests;
