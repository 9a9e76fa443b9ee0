use std::sync::Arc;

use http::StatusCode;
use portcullis_metadata::Secret;
use serde::Deserialize;
use serde_json::json;

use crate::{
    app::App,
    clients::{Client, ClientAuthentication, Registered},
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
    redirect::{RedirectUri, RedirectUriError},
    respond::{Reply, json_refusal, json_reply},
    tables::Full,
};

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

/// The members of a registration request that matter here (RFC 7591 section 2). Others are ignored and not
/// returned, which tells the client that they were not taken.
#[derive(Deserialize)]
struct Request {
    client_name: Option<String>,
    redirect_uris: Option<Vec<String>>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
}

fn registered(app: &App, body: &[u8]) -> Result<Reply, OAuthRefusal> {
    let request: Request = serde_json::from_slice(body)
        .map_err(|_| invalid("the body is not a JSON object with members of the types that RFC 7591 names"))?;
    let redirect_uris = redirect_uris_of(&request)?;
    let name = name_of(&request)?;
    if request.grant_types.as_ref().is_some_and(|types| !types.iter().any(|name| name == "authorization_code")) {
        return Err(invalid("grant_types without authorization_code: there is no other grant type here"));
    }
    if request.response_types.as_ref().is_some_and(|types| !types.iter().any(|name| name == "code")) {
        return Err(invalid("response_types without code: there is no other response type here"));
    }
    // RFC 7591 section 2: the default is client_secret_basic.
    let method = request.token_endpoint_auth_method.as_deref().unwrap_or("client_secret_basic");
    let secret = Secret::new(random_text(32)?.as_str());
    let authentication = match method {
        "none" => ClientAuthentication::None,
        "client_secret_basic" => ClientAuthentication::SecretBasic(secret.clone()),
        "client_secret_post" => ClientAuthentication::SecretPost(secret.clone()),
        _ => return Err(invalid("token_endpoint_auth_method is none, client_secret_basic or client_secret_post")),
    };

    let id = random_text(16)?;
    let mut body = json!({
        "client_id": *id,
        "client_id_issued_at": app.settings.clock.unix().as_secs(),
        "redirect_uris": redirect_uris.iter().map(RedirectUri::as_str).collect::<Vec<_>>(),
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    });
    if let Some(name) = &name {
        body["client_name"] = json!(name);
    }
    if !matches!(authentication, ClientAuthentication::None) {
        body["client_secret"] = json!(secret.secret());
        body["client_secret_expires_at"] = json!(0);
    }
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
    Ok(json_reply(StatusCode::CREATED, &body))
}

const fn invalid(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidClientMetadata, description)
}

fn redirect_uris_of(request: &Request) -> Result<Vec<RedirectUri>, OAuthRefusal> {
    let refuse = |description| OAuthRefusal::new(ErrorName::InvalidRedirectUri, description);
    let texts = request.redirect_uris.as_deref().unwrap_or_default();
    if texts.is_empty() || texts.len() > MAX_REDIRECT_URIS {
        return Err(refuse("redirect_uris has 1 to 10 entries"));
    }
    let parsed: Result<_, RedirectUriError> = texts.iter().map(|text| RedirectUri::parse(text)).collect();
    parsed.map_err(|error| refuse(error.description()))
}

fn name_of(request: &Request) -> Result<Option<Box<str>>, OAuthRefusal> {
    let Some(name) = request.client_name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(invalid("client_name has at most 100 characters and no control characters"));
    }
    Ok(Some(name.into()))
}
