//! [`ServerMetadata`]: what a server publishes about itself (RFC 8414).

use portcullis_metadata::{
    AuthorizationServerMetadata, Issuer, Scopes, authorization::PkceChallenge,
};
use serde_json::{Map, json};
use url::Url;

use crate::{
    client::{Credential, GrantType, assertion_algorithms},
    scopes::OFFLINE_ACCESS,
};

/// What differs between servers in the metadata document (RFC 8414 section 2).
#[derive(Clone, Debug)]
pub struct ServerMetadata<'a> {
    /// The issuer identifier.
    pub issuer: &'a Issuer,
    /// The authorization endpoint.
    pub authorization_endpoint: Url,
    /// The token endpoint.
    pub token_endpoint: Url,
    /// The registration endpoint, if clients can register.
    pub registration_endpoint: Option<Url>,
    /// The introspection endpoint, if there is one.
    pub introspection_endpoint: Option<Url>,
    /// The revocation endpoint, if there is one.
    pub revocation_endpoint: Option<Url>,
    /// The URL of the public keys.
    pub jwks_uri: Url,
    /// The grant types.
    pub grant_types: &'a [GrantType],
    /// The scopes. [`OFFLINE_ACCESS`] is listed in any case.
    pub scopes: &'a Scopes,
    /// The authentication methods of the token endpoint.
    pub authentication_methods: &'a [&'a str],
    /// Whether clients may be identified by the URL of their metadata document.
    pub client_documents: bool,
    /// The algorithms of ID tokens. OpenID Connect Discovery requires the member, so a server
    /// without ID tokens lists the algorithms of its access tokens.
    pub id_token_algorithms: &'a [&'a str],
}

impl ServerMetadata<'_> {
    /// Returns the document: the code flow with PKCE (S256), and `iss` in authorization responses.
    ///
    /// The same document can be served for OpenID Connect Discovery, so it has the members that
    /// OpenID Connect requires, whether the server issues ID tokens or not. `openid` is not listed
    /// as a scope unless it is among [`scopes`](Self::scopes).
    pub fn document(self) -> AuthorizationServerMetadata {
        let mut extra = Map::new();
        extra.insert("subject_types_supported".to_owned(), json!(["public"]));
        extra.insert(
            "id_token_signing_alg_values_supported".to_owned(),
            json!(self.id_token_algorithms),
        );
        let algorithms = algorithm_names();
        let has_introspection = self.introspection_endpoint.is_some();
        let has_revocation = self.revocation_endpoint.is_some();
        let scopes = self
            .scopes
            .iter()
            .filter(|scope| *scope != OFFLINE_ACCESS)
            .chain([OFFLINE_ACCESS]);
        let grant_types = self.grant_types.iter().map(|grant| grant.as_str());
        AuthorizationServerMetadata {
            authorization_endpoint: Some(self.authorization_endpoint),
            token_endpoint: Some(self.token_endpoint),
            registration_endpoint: self.registration_endpoint,
            introspection_endpoint: self.introspection_endpoint,
            revocation_endpoint: self.revocation_endpoint,
            jwks_uri: Some(self.jwks_uri),
            response_types_supported: owned(["code"]),
            response_modes_supported: Some(owned(["query"])),
            grant_types_supported: Some(owned(grant_types)),
            scopes_supported: Some(owned(scopes)),
            code_challenge_methods_supported: Some(owned([PkceChallenge::METHOD])),
            token_endpoint_auth_methods_supported: Some(owned(
                self.authentication_methods.iter().copied(),
            )),
            token_endpoint_auth_signing_alg_values_supported: Some(algorithms.clone()),
            introspection_endpoint_auth_methods_supported: has_introspection
                .then(|| owned(Credential::CONFIDENTIAL_METHODS)),
            introspection_endpoint_auth_signing_alg_values_supported: has_introspection
                .then(|| algorithms.clone()),
            revocation_endpoint_auth_methods_supported: has_revocation
                .then(|| owned(Credential::METHODS)),
            revocation_endpoint_auth_signing_alg_values_supported: has_revocation
                .then_some(algorithms),
            authorization_response_iss_parameter_supported: true,
            client_id_metadata_document_supported: self.client_documents,
            extra,
            ..AuthorizationServerMetadata::new(self.issuer.clone())
        }
    }
}

/// Returns the names of the algorithms that are allowed for assertions and proofs.
pub fn algorithm_names() -> Vec<String> {
    let algorithms = assertion_algorithms();
    owned(algorithms.iter().map(|algorithm| algorithm.as_str()))
}

fn owned<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_server_without_id_tokens_states_what_it_supports() {
        let issuer = Issuer::parse("https://mcp.example.com").unwrap();
        let scopes = Scopes::parse("mcp:tools offline_access").unwrap();
        let url = |path: &str| Url::parse(&format!("https://mcp.example.com{path}")).unwrap();
        let metadata = ServerMetadata {
            issuer: &issuer,
            authorization_endpoint: url("/oauth/authorize"),
            token_endpoint: url("/oauth/token"),
            registration_endpoint: Some(url("/oauth/register")),
            introspection_endpoint: None,
            revocation_endpoint: Some(url("/oauth/revoke")),
            jwks_uri: url("/oauth/jwks"),
            grant_types: &[GrantType::AuthorizationCode, GrantType::RefreshToken],
            scopes: &scopes,
            authentication_methods: &["none", "private_key_jwt"],
            client_documents: true,
            id_token_algorithms: &["ES256"],
        };
        let document: Value = serde_json::from_slice(&metadata.document().to_json()).unwrap();
        for (member, expected) in [
            ("issuer", json!("https://mcp.example.com")),
            ("id_token_signing_alg_values_supported", json!(["ES256"])),
            ("client_id_metadata_document_supported", json!(true)),
            (
                "authorization_response_iss_parameter_supported",
                json!(true),
            ),
            ("scopes_supported", json!(["mcp:tools", "offline_access"])),
            ("code_challenge_methods_supported", json!(["S256"])),
            ("response_types_supported", json!(["code"])),
            ("response_modes_supported", json!(["query"])),
            (
                "grant_types_supported",
                json!(["authorization_code", "refresh_token"]),
            ),
            (
                "token_endpoint_auth_methods_supported",
                json!(["none", "private_key_jwt"]),
            ),
            ("introspection_endpoint", Value::Null),
        ] {
            assert_eq!(document[member], expected, "{member}");
        }
    }
}
