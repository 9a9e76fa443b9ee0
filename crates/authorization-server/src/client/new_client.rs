//! [`NewClient`]: a client as its registration describes it.

use std::sync::Arc;

use portcullis_metadata::client::{ClientMetadata, ClientRegistrationResponse};

use crate::{
    client::{
        Client, Credential, GrantType, RegistrationRules,
        metadata::{RESPONSE_TYPE, parse_grant_types, parse_name, parse_redirect_uris},
        new_credential::NewCredential,
    },
    error::ErrorResponse,
};

/// A client that is not stored yet, or that replaces a stored one.
#[derive(Debug)]
pub struct NewClient {
    /// The client.
    pub client: Client,
    /// The information response, without the identifier, the dates and the registration access
    /// token.
    pub information: ClientRegistrationResponse,
}

/// A registered client, as a store keeps it.
#[derive(Clone, Debug)]
pub struct ClientRegistration {
    /// The client.
    pub client: Arc<Client>,
    /// The response to the registration, which has the identifier of the client.
    pub information: ClientRegistrationResponse,
}

impl NewClient {
    /// Validates client metadata by these rules. Unsupported members are ignored and not returned,
    /// as RFC 7591 section 3.2.1 requires. A client that is updated keeps its `current` secret if
    /// it keeps its authentication method.
    ///
    /// # Errors
    /// Fails with `invalid_redirect_uri` or `invalid_client_metadata`, and when the operating
    /// system gives no random bytes for a secret.
    pub fn from_metadata(
        metadata: ClientMetadata,
        rules: RegistrationRules<'_>,
        current: Option<&Credential>,
    ) -> Result<Self, ErrorResponse> {
        let name = parse_name(&metadata, rules)?;
        let grant_types = parse_grant_types(&metadata, rules)?;
        let uses_codes = grant_types.contains(&GrantType::AuthorizationCode);
        let redirect_uris = if uses_codes || !metadata.redirect_uris.is_empty() {
            parse_redirect_uris(&metadata, rules)?
        } else {
            Vec::new()
        };
        let NewCredential {
            method,
            credential,
            secret,
            jwks,
        } = if rules.is_lenient() {
            NewCredential::reduced(&metadata, &redirect_uris)?
        } else {
            NewCredential::from_metadata(&metadata, current)?
        };
        let registered = ClientMetadata {
            redirect_uris: redirect_uris
                .iter()
                .map(|uri| uri.as_str().to_owned())
                .collect(),
            client_name: name.as_deref().map(str::to_owned),
            grant_types: grant_types
                .iter()
                .map(|grant_type| grant_type.as_str().to_owned())
                .collect(),
            response_types: if uses_codes {
                vec![RESPONSE_TYPE.to_owned()]
            } else {
                Vec::new()
            },
            token_endpoint_auth_method: Some(method.to_owned()),
            jwks,
            ..ClientMetadata::default()
        };
        let information = ClientRegistrationResponse::new(String::new(), secret, registered);
        let client = Client {
            name,
            redirect_uris,
            credential,
            grant_types,
            scopes: None,
            may_introspect: false,
            is_document: false,
        };
        Ok(Self {
            client,
            information,
        })
    }
}
