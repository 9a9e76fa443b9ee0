pub(super) mod access;
mod provider_rules;

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    ErrorResponse,
    client::{ClientRegistration, NewClient, RedirectUri, RegistrationRules, parse_registration},
    random_secret,
};
use portcullis_metadata::client::ClientMetadata;

use crate::{
    app::App,
    authentication::mode::ClientAuthenticationMode,
    clients::registration_token::generate_registration_token,
    config::Config,
    providers::profile::RegistrationRule,
    server::{
        endpoint::Endpoint,
        respond::{Reply, json_error, json_reply},
    },
};

/// Handles the registration endpoint.
pub(crate) async fn register(app: &App, headers: &HeaderMap, body: &[u8]) -> Reply {
    if app.config.profile.registration == RegistrationRule::ApiToken {
        return provider_rules::missing_api_token();
    }
    register_client(app, headers, body)
        .await
        .unwrap_or_else(|error| {
            tracing::info!(
                registration.error = error.code.as_str(),
                registration.description = error.description,
                "rejected a registration"
            );
            json_error(error)
        })
}

async fn register_client(
    app: &App,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Reply, ErrorResponse> {
    let settings = &app.config.settings;
    access::check_initial_token(&settings.registration, headers)?;
    let mut metadata = parse_registration(body)?;
    if app.config.profile.registration == RegistrationRule::Strict {
        if let Some(reply) = provider_rules::reject_unknown_members(&metadata) {
            return Ok(reply);
        }
        provider_rules::check_scopes(&settings.scopes, &metadata)?;
    }
    adapt_method(&mut metadata, settings.client_authentication_mode);
    let client = NewClient::from_metadata(metadata, RegistrationRules::Strict, None)?;
    store(app, client).await
}

/// Stores a client under a new identifier and returns its information response (RFC 7591 section
/// 3.2.1).
async fn store(app: &App, mut new: NewClient) -> Result<Reply, ErrorResponse> {
    let id = random_secret(16)?;
    let id = id.secret();
    new.information.registration_client_uri = Some(client_uri(&app.config, id));
    new.information.registration_access_token = Some(generate_registration_token()?);
    let ClientRegistration {
        client,
        information,
    } = portcullis_authorization_server::register(app, id, app.config.now(), new).await?;
    tracing::info!(
        client.id = id,
        client.name = client.name.as_deref(),
        client.redirects = ?client.redirect_uris.iter().map(RedirectUri::authority).collect::<Vec<_>>(),
        "registered a client"
    );
    Ok(json_reply(StatusCode::CREATED, information.to_json()))
}

/// Returns the URL at which a client manages its registration.
fn client_uri(config: &Config, id: &str) -> String {
    format!("{}{id}", config.url(Endpoint::Client))
}

/// Replaces the authentication method that a client requests by the one that the imitated server
/// registers.
pub(super) fn adapt_method(metadata: &mut ClientMetadata, mode: ClientAuthenticationMode) {
    let method = metadata.token_endpoint_auth_method.as_deref();
    let is_replaced = mode == ClientAuthenticationMode::PythonSdk
        && matches!(method, None | Some("client_secret_basic"));
    if is_replaced {
        metadata.token_endpoint_auth_method = Some("client_secret_post".to_owned());
    }
}
