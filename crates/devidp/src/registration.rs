use std::sync::Arc;

use http::StatusCode;
use portcullis_metadata::{ClientMetadata, ClientRegistrationRequest, ClientRegistrationResponse, Secret, UnixTime};

use crate::{
    app::App,
    clients::{Client, ClientAuthentication, Registered},
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
    redirect::{RedirectUri, RedirectUriError},
    respond::{Reply, json_refusal, json_reply},
    tables::Full,
};

const GRANT_TYPE: &str = "authorization_code";
const RESPONSE_TYPE: &str = "code";
const MAX_REDIRECT_URIS: usize = 10;
const MAX_NAME_CHARS: usize = 100;

/// Answers the registration endpoint (RFC 7591). Anybody may register a client.
pub(crate) fn register(app: &App, body: &[u8]) -> Reply {
    registered(app, body).unwrap_or_else(|refusal| {
        tracing::info!(
            registration.error = refusal.error.as_str(),
            registration.refused = refusal.description,
            "refused a registration"
        );
        json_refusal(refusal)
    })
}

/// Reads what matters here. Other members are ignored and not returned, which tells the client that they were not
/// taken (RFC 7591 section 3.2.1).
fn registered(app: &App, body: &[u8]) -> Result<Reply, OAuthRefusal> {
    let request = ClientRegistrationRequest::parse(body)
        .map_err(|_| invalid("the body is not a JSON object with members of the types that RFC 7591 names"))?
        .metadata;
    let redirect_uris = redirect_uris_of(&request)?;
    let name = name_of(&request)?;
    if !names_or_leaves_out(&request.grant_types, GRANT_TYPE) {
        return Err(invalid("grant_types without authorization_code: there is no other grant type here"));
    }
    if !names_or_leaves_out(&request.response_types, RESPONSE_TYPE) {
        return Err(invalid("response_types without code: there is no other response type here"));
    }
    // RFC 7591 section 2: the default is client_secret_basic.
    let method = request.token_endpoint_auth_method.unwrap_or_else(|| "client_secret_basic".to_owned());
    let secret = Secret::new(random_text(32)?.as_str());
    let (authentication, secret) = match method.as_str() {
        "none" => (ClientAuthentication::None, None),
        "client_secret_basic" => (ClientAuthentication::SecretBasic(secret.clone()), Some(secret)),
        "client_secret_post" => (ClientAuthentication::SecretPost(secret.clone()), Some(secret)),
        _ => return Err(invalid("token_endpoint_auth_method is none, client_secret_basic or client_secret_post")),
    };

    let id = random_text(16)?;
    let response = ClientRegistrationResponse {
        client_id: id.to_string(),
        client_secret: secret,
        client_id_issued_at: Some(UnixTime::from_secs(app.settings.clock.unix().as_secs())),
        client_secret_expires_at: None,
        registration_access_token: None,
        registration_client_uri: None,
        metadata: ClientMetadata {
            redirect_uris: request.redirect_uris,
            client_name: name.as_deref().map(str::to_owned),
            grant_types: vec![GRANT_TYPE.to_owned()],
            response_types: vec![RESPONSE_TYPE.to_owned()],
            token_endpoint_auth_method: Some(method),
            ..ClientMetadata::default()
        },
    };
    let client = Arc::new(Client { name, redirect_uris, authentication });
    let row = Registered { client: Arc::clone(&client), used: false };
    app.clients.insert(&id, row, |row| !row.used).map_err(|Full| {
        let description = "no room for another client: all that are registered are in use";
        OAuthRefusal::new(ErrorName::TemporarilyUnavailable, description)
    })?;
    tracing::info!(
        client.id = id.as_str(),
        client.name = client.name.as_deref(),
        client.redirects = ?client.redirect_uris.iter().map(RedirectUri::authority).collect::<Vec<_>>(),
        "registered a client"
    );
    Ok(json_reply(StatusCode::CREATED, response.to_json()))
}

fn names_or_leaves_out(names: &[String], needed: &str) -> bool {
    names.is_empty() || names.iter().any(|name| name == needed)
}

const fn invalid(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidClientMetadata, description)
}

fn redirect_uris_of(request: &ClientMetadata) -> Result<Vec<RedirectUri>, OAuthRefusal> {
    let refuse = |description| OAuthRefusal::new(ErrorName::InvalidRedirectUri, description);
    let texts = &request.redirect_uris;
    if texts.is_empty() || texts.len() > MAX_REDIRECT_URIS {
        return Err(refuse("redirect_uris has 1 to 10 entries"));
    }
    let parsed: Result<_, RedirectUriError> = texts.iter().map(|text| RedirectUri::parse(text)).collect();
    parsed.map_err(|error| refuse(error.description()))
}

fn name_of(request: &ClientMetadata) -> Result<Option<Box<str>>, OAuthRefusal> {
    let Some(name) = request.client_name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(invalid("client_name has at most 100 characters and no control characters"));
    }
    Ok(Some(name.into()))
}
