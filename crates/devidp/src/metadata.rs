//! The authorization server metadata document (RFC 8414).

use portcullis_metadata::{AuthorizationServerMetadata, Issuer, PkceChallenge};
use serde_json::{Map, json};

use crate::{
    authorize::OFFLINE_ACCESS,
    clients::{Credential, assertion_algorithms},
    server::endpoint::Endpoint,
    settings::{DevIdpSettings, DocumentFetch, Registration},
};

/// Returns the metadata document (RFC 8414 section 2). The same document is served for OpenID Connect Discovery, so it has
/// the members that OpenID Connect requires, although no ID tokens are issued and `openid` is not a scope.
pub(crate) fn document(settings: &DevIdpSettings, issuer: &Issuer) -> Vec<u8> {
    let endpoint_url = |endpoint: Endpoint| {
        let mut url = issuer.url().clone();
        url.set_path(&endpoint.path(&settings.issuer_path));
        Some(url)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut extra = Map::new();
    extra.insert("subject_types_supported".to_owned(), json!(["public"]));
    extra.insert("id_token_signing_alg_values_supported".to_owned(), json!(["RS256"]));
    let algorithms: Vec<_> = assertion_algorithms().iter().map(|algorithm| algorithm.as_str().to_owned()).collect();
    extra.insert("dpop_signing_alg_values_supported".to_owned(), json!(algorithms));
    let scopes = settings.scopes.iter().filter(|scope| *scope != OFFLINE_ACCESS).chain([OFFLINE_ACCESS]);
    AuthorizationServerMetadata {
        authorization_endpoint: endpoint_url(Endpoint::Authorize),
        token_endpoint: endpoint_url(Endpoint::Token),
        registration_endpoint: endpoint_url(Endpoint::Register)
            .filter(|_| settings.registration != Registration::Closed),
        introspection_endpoint: endpoint_url(Endpoint::Introspect),
        revocation_endpoint: endpoint_url(Endpoint::Revoke),
        jwks_uri: endpoint_url(Endpoint::Jwks),
        response_types_supported: names(&["code"]),
        response_modes_supported: Some(names(&["query"])),
        grant_types_supported: Some(settings.grant_types().iter().map(|grant| grant.as_str().to_owned()).collect()),
        scopes_supported: Some(scopes.map(str::to_owned).collect()),
        code_challenge_methods_supported: Some(names(&[PkceChallenge::METHOD])),
        token_endpoint_auth_methods_supported: Some(names(&Credential::METHODS)),
        token_endpoint_auth_signing_alg_values_supported: Some(algorithms.clone()),
        introspection_endpoint_auth_methods_supported: Some(names(&Credential::CONFIDENTIAL_METHODS)),
        introspection_endpoint_auth_signing_alg_values_supported: Some(algorithms.clone()),
        revocation_endpoint_auth_methods_supported: Some(names(&Credential::METHODS)),
        revocation_endpoint_auth_signing_alg_values_supported: Some(algorithms),
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: !matches!(settings.client_documents, DocumentFetch::Off),
        extra,
        ..AuthorizationServerMetadata::new(issuer.clone())
    }
    .to_json()
}
