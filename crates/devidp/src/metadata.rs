//! The authorization server metadata documents (RFC 8414).

use std::collections::HashMap;

use bytes::Bytes;
use portcullis_authorization_server::{ServerMetadata, algorithm_names, client::Credential};
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

/// Returns the metadata document (RFC 8414 section 2).
fn document(config: &Config) -> Map<String, Value> {
    let settings = &config.settings;
    let methods: &[&str] = match settings.client_authentication_mode {
        ClientAuthenticationMode::PythonSdk => &["client_secret_post", "client_secret_basic"],
        _ => &Credential::METHODS,
    };
    let mut metadata = ServerMetadata {
        issuer: &config.issuer,
        authorization_endpoint: config.url(Endpoint::Authorize),
        token_endpoint: config.url(Endpoint::Token),
        registration_endpoint: Some(config.url(Endpoint::Register))
            .filter(|_| settings.registration != Registration::Closed),
        introspection_endpoint: Some(config.url(Endpoint::Introspect)),
        revocation_endpoint: Some(config.url(Endpoint::Revoke)),
        jwks_uri: config.url(Endpoint::Jwks),
        grant_types: settings.grant_types(),
        scopes: &settings.scopes,
        authentication_methods: methods,
        client_documents: !matches!(settings.client_documents, DocumentFetch::Off),
        id_token_algorithms: &["RS256"],
    }
    .document();
    metadata.extra.insert(
        "id_token_signing_alg_values_supported".to_owned(),
        json!([settings.signing_algorithm.as_str()]),
    );
    if config.profile.id_token_claims.is_some() {
        let user_info = config.url(Endpoint::UserInfo);
        metadata
            .extra
            .insert("userinfo_endpoint".to_owned(), json!(user_info.as_str()));
        for member in [
            "backchannel_logout_supported",
            "backchannel_logout_session_supported",
        ] {
            metadata.extra.insert(member.to_owned(), json!(true));
        }
    }
    let device = config.url(Endpoint::DeviceAuthorization);
    metadata.extra.insert(
        "device_authorization_endpoint".to_owned(),
        json!(device.as_str()),
    );
    metadata.extra.insert(
        "dpop_signing_alg_values_supported".to_owned(),
        json!(algorithm_names()),
    );
    // The metadata serializes to an object.
    serde_json::from_slice(&metadata.to_json()).unwrap_or_default()
}
