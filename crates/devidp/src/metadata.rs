//! The authorization server metadata documents (RFC 8414).

use std::collections::HashMap;

use bytes::Bytes;
use portcullis_authorization_server::{
    client::{Credential, assertion_algorithms},
    scopes::OFFLINE_ACCESS,
};
use portcullis_metadata::{AuthorizationServerMetadata, authorization::PkceChallenge};
use serde_json::{Map, Value, json};

use crate::{
    authentication::mode::ClientAuthenticationMode,
    config::Config,
    providers::profile::Profile,
    server::endpoint::Endpoint,
    settings::{DocumentFetch, Registration},
};

/// The metadata documents, by the path at which they are served.
pub(crate) type Documents = HashMap<Box<str>, Bytes>;

/// Returns the metadata documents of the server.
pub(crate) fn documents(config: &Config) -> Documents {
    let document = adapt(document(config), config.profile);
    let mut documents: Documents = paths(config)
        .map(|path| (path.into(), json_bytes(&document)))
        .collect();
    for other in config.profile.other_documents {
        let mut document = document.clone();
        document.insert(
            "issuer".to_owned(),
            json!(format!("{}{}", config.origin(), other.issuer_path)),
        );
        documents.insert(other.path.into(), json_bytes(&document));
    }
    documents
}

/// Returns the first path at which the metadata document of the issuer is served.
pub(crate) fn main_path(config: &Config) -> String {
    paths(config).next().unwrap_or_default()
}

/// Returns the paths at which the metadata document of the issuer is served.
fn paths(config: &Config) -> impl Iterator<Item = String> {
    let issuer_path = config.issuer.url().path().trim_end_matches('/');
    config
        .profile
        .well_known
        .iter()
        .map(move |location| location.path(issuer_path))
}

/// Omits and replaces members as the imitated provider does.
fn adapt(mut members: Map<String, Value>, profile: &Profile) -> Map<String, Value> {
    members.retain(|name, _| !profile.omitted_members.contains(&name.as_str()));
    members.extend(
        profile
            .replaced_lists
            .iter()
            .map(|(name, list)| ((*name).to_owned(), json!(list))),
    );
    members
}

fn json_bytes(document: &Map<String, Value>) -> Bytes {
    Bytes::from(json!(document).to_string())
}

/// Returns the metadata document (RFC 8414 section 2). The same document is served for OpenID
/// Connect Discovery, so it has the members that OpenID Connect requires, although no ID tokens are
/// issued and `openid` is not a scope.
fn document(config: &Config) -> Map<String, Value> {
    let settings = &config.settings;
    let endpoint_url = |endpoint: Endpoint| Some(config.url(endpoint));
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let mut extra = Map::new();
    extra.insert("subject_types_supported".to_owned(), json!(["public"]));
    extra.insert(
        "id_token_signing_alg_values_supported".to_owned(),
        json!(["RS256"]),
    );
    let device = config.url(Endpoint::DeviceAuthorization);
    extra.insert(
        "device_authorization_endpoint".to_owned(),
        json!(device.as_str()),
    );
    let methods: &[&str] = match settings.client_authentication_mode {
        ClientAuthenticationMode::PythonSdk => &["client_secret_post", "client_secret_basic"],
        _ => &Credential::METHODS,
    };
    let algorithms: Vec<_> = assertion_algorithms()
        .iter()
        .map(|algorithm| algorithm.as_str().to_owned())
        .collect();
    extra.insert(
        "dpop_signing_alg_values_supported".to_owned(),
        json!(algorithms),
    );
    let scopes = settings
        .scopes
        .iter()
        .filter(|scope| *scope != OFFLINE_ACCESS)
        .chain([OFFLINE_ACCESS]);
    let metadata = AuthorizationServerMetadata {
        authorization_endpoint: endpoint_url(Endpoint::Authorize),
        token_endpoint: endpoint_url(Endpoint::Token),
        registration_endpoint: endpoint_url(Endpoint::Register)
            .filter(|_| settings.registration != Registration::Closed),
        introspection_endpoint: endpoint_url(Endpoint::Introspect),
        revocation_endpoint: endpoint_url(Endpoint::Revoke),
        jwks_uri: endpoint_url(Endpoint::Jwks),
        response_types_supported: names(&["code"]),
        response_modes_supported: Some(names(&["query"])),
        grant_types_supported: Some(
            settings
                .grant_types()
                .iter()
                .map(|grant| grant.as_str().to_owned())
                .collect(),
        ),
        scopes_supported: Some(scopes.map(str::to_owned).collect()),
        code_challenge_methods_supported: Some(names(&[PkceChallenge::METHOD])),
        token_endpoint_auth_methods_supported: Some(names(methods)),
        token_endpoint_auth_signing_alg_values_supported: Some(algorithms.clone()),
        introspection_endpoint_auth_methods_supported: Some(names(
            &Credential::CONFIDENTIAL_METHODS,
        )),
        introspection_endpoint_auth_signing_alg_values_supported: Some(algorithms.clone()),
        revocation_endpoint_auth_methods_supported: Some(names(&Credential::METHODS)),
        revocation_endpoint_auth_signing_alg_values_supported: Some(algorithms),
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: !matches!(
            settings.client_documents,
            DocumentFetch::Off
        ),
        extra,
        ..AuthorizationServerMetadata::new(config.issuer.clone())
    };
    // The metadata serializes to an object.
    serde_json::from_slice(&metadata.to_json()).unwrap_or_default()
}
