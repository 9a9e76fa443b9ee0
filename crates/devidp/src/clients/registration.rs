//! The registration endpoint (RFC 7591 section 3).

pub(super) mod access;
pub(super) mod new_client;
mod new_credential;
mod provider_rules;

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, client::RedirectUri, random_secret,
};
use portcullis_metadata::{
    UnixTime,
    client::{ClientMetadata, ClientRegistrationRequest},
};

use crate::{
    app::App,
    clients::{
        metadata::invalid, registration_token::RegistrationTokenHash, registry::RegisteredClient,
    },
    config::Config,
    providers::profile::RegistrationRule,
    server::{
        endpoint::Endpoint,
        respond::{Reply, json_error, json_reply},
    },
    tables::TableFull,
};
use new_client::NewClient;

/// Handles the registration endpoint.
pub(crate) fn register(app: &App, headers: &HeaderMap, body: &[u8]) -> Reply {
    if app.config.profile.registration == RegistrationRule::ApiToken {
        return provider_rules::missing_api_token();
    }
    register_client(app, headers, body).unwrap_or_else(|error| {
        tracing::info!(
            registration.error = error.code.as_str(),
            registration.description = error.description,
            "rejected a registration"
        );
        json_error(error)
    })
}

fn register_client(app: &App, headers: &HeaderMap, body: &[u8]) -> Result<Reply, ErrorResponse> {
    let settings = &app.config.settings;
    access::check_initial_token(&settings.registration, headers)?;
    let metadata = parse_body(body)?;
    if app.config.profile.registration == RegistrationRule::Strict {
        if let Some(reply) = provider_rules::reject_unknown_members(&metadata) {
            return Ok(reply);
        }
        provider_rules::check_scopes(&settings.scopes, &metadata)?;
    }
    let client = NewClient::from_metadata(metadata, settings.client_authentication_mode, None)?;
    store(app, client)
}

/// Stores a client under a new identifier and returns its information response (RFC 7591 section
/// 3.2.1).
fn store(app: &App, new: NewClient) -> Result<Reply, ErrorResponse> {
    let NewClient {
        client,
        mut information,
    } = new;
    let id = random_secret(16)?;
    let id = id.secret();
    information.client_id = id.to_owned();
    information.client_id_issued_at = Some(UnixTime::from_secs(app.config.now().as_secs()));
    information.registration_client_uri = Some(client_uri(&app.config, id));

    let (token, registration_token) = RegistrationTokenHash::generate()?;
    let client = Arc::new(client);
    let registered = RegisteredClient {
        client: Arc::clone(&client),
        is_approved: false,
        information: information.clone(),
        registration_token,
    };
    app.clients.register(id, registered).map_err(|TableFull| {
        let description = "the maximum number of clients is reached, and all of them are in use";
        ErrorResponse::new(ErrorCode::TemporarilyUnavailable, description)
    })?;
    tracing::info!(
        client.id = id,
        client.name = client.name.as_deref(),
        client.redirects = ?client.redirect_uris.iter().map(RedirectUri::authority).collect::<Vec<_>>(),
        "registered a client"
    );
    information.registration_access_token = Some(token);
    Ok(json_reply(StatusCode::CREATED, information.to_json()))
}

/// Returns the URL at which a client manages its registration.
fn client_uri(config: &Config, id: &str) -> String {
    format!("{}{id}", config.url(Endpoint::Client))
}

/// Parses the body of a registration or update request.
pub(super) fn parse_body(body: &[u8]) -> Result<ClientMetadata, ErrorResponse> {
    match ClientRegistrationRequest::parse(body) {
        Ok(request) => Ok(request.metadata),
        Err(_) => Err(invalid(
            "the body must be a JSON object whose members have the types of RFC 7591",
        )),
    }
}
