//! Management of registrations (RFC 7592).

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, Method, StatusCode};
use portcullis_metadata::{ClientMetadata, Secret};
use sha2::{Digest as _, Sha256};

use crate::{
    app::App,
    clients::{
        Registered,
        registration::{bearer_token, parse_request, register_metadata},
    },
    handle::random_text,
    server::{
        endpoint::Endpoint,
        oauth_error::{ErrorCode, ErrorResponse},
        respond::{Reply, json_error, json_reply, plain},
    },
    tables::RowAction,
};

/// The hash of a registration access token. The token itself is not stored.
pub(crate) struct TokenHash(Secret);

impl TokenHash {
    /// Generates a token and its hash.
    pub(super) fn generate() -> Result<(Secret, Self), getrandom::Error> {
        let token = Secret::new(random_text(32)?.as_str());
        let hash = Self::of(&token);
        Ok((token, hash))
    }

    fn of(token: &Secret) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(Sha256::digest(token.secret()))))
    }

    /// Compares in constant time.
    fn matches(&self, token: &Secret) -> bool {
        Self::of(token).0 == self.0
    }
}

/// Returns the URL at which a client manages its registration.
pub(super) fn client_uri(app: &App, id: &str) -> String {
    let mut url = app.issuer.url().clone();
    url.set_path(&format!("{}{id}", Endpoint::Client.path(&app.settings.issuer_path)));
    url.into()
}

/// Handles the client configuration endpoint (RFC 7592 section 2): `GET` reads a registration, `PUT` replaces it and its
/// registration access token, `DELETE` removes it. The registration access token is required.
pub(crate) fn manage(app: &App, id: &str, method: &Method, headers: &HeaderMap, body: &[u8]) -> Reply {
    let managed = match *method {
        Method::PUT => update(app, id, headers, body),
        Method::DELETE => delete(app, id, headers),
        _ => read(app, id, headers),
    };
    managed.unwrap_or_else(|error| {
        tracing::info!(
            registration.error = error.error.as_str(),
            registration.description = error.description,
            "rejected a request to manage a registration"
        );
        json_error(error)
    })
}

/// RFC 7592 section 2.1. The response repeats the token of the request, because only its hash is stored.
fn read(app: &App, id: &str, headers: &HeaderMap) -> Result<Reply, ErrorResponse> {
    let token = bearer_token(headers).ok_or(NO_ACCESS)?;
    let mut information = with_client(app, id, &token, |row| (row.information.clone(), RowAction::Keep))?;
    information.registration_access_token = Some(token);
    Ok(json_reply(StatusCode::OK, information.to_json()))
}

/// RFC 7592 section 2.2. Members that are omitted get their default. The registration access token is replaced.
fn update(app: &App, id: &str, headers: &HeaderMap, body: &[u8]) -> Result<Reply, ErrorResponse> {
    let token = bearer_token(headers).ok_or(NO_ACCESS)?;
    let client = with_client(app, id, &token, |row| (Arc::clone(&row.client), RowAction::Keep))?;
    let mut request = parse_request(body)?;
    let secret = check_update(id, &mut request)?;
    let (client, mut information) = register_metadata(app, request, Some(&client.credential))?;
    let (next_token, next_hash) = TokenHash::generate()?;
    let updated = with_client(app, id, &token, |row| {
        if secret.is_some() && secret != row.information.client_secret {
            return (
                Err(invalid("client_secret is not the current one: a client cannot choose its secret")),
                RowAction::Keep,
            );
        }
        information.client_id.clone_from(&row.information.client_id);
        information.client_id_issued_at = row.information.client_id_issued_at;
        information.registration_client_uri.clone_from(&row.information.registration_client_uri);
        (row.client, row.registration_token) = (Arc::new(client), next_hash);
        row.information = information.clone();
        (Ok(()), RowAction::Renew)
    })?;
    updated?;
    tracing::info!(client.id = id, "updated a registration");
    information.registration_access_token = Some(next_token);
    Ok(json_reply(StatusCode::OK, information.to_json()))
}

/// RFC 7592 section 2.3. The client's codes and sessions end.
fn delete(app: &App, id: &str, headers: &HeaderMap) -> Result<Reply, ErrorResponse> {
    let token = bearer_token(headers).ok_or(NO_ACCESS)?;
    with_client(app, id, &token, |_| ((), RowAction::Keep))?;
    app.forget_client(id);
    tracing::info!(client.id = id, "deleted a registration");
    Ok(plain(StatusCode::NO_CONTENT, ""))
}

/// Calls `f` with a registered client if the token is its registration access token. RFC 7592 requires the same error for
/// unknown clients.
fn with_client<R>(
    app: &App,
    id: &str,
    token: &Secret,
    f: impl FnOnce(&mut Registered) -> (R, RowAction),
) -> Result<R, ErrorResponse> {
    let result = app.clients.update(id, |row| {
        if !row.registration_token.matches(token) {
            return (None, RowAction::Keep);
        }
        let (result, action) = f(row);
        (Some(result), action)
    });
    result.flatten().ok_or(NO_ACCESS)
}

/// Checks the members that an update must and must not have, and returns the client secret, if present.
fn check_update(id: &str, request: &mut ClientMetadata) -> Result<Option<Secret>, ErrorResponse> {
    let forbidden =
        ["registration_access_token", "registration_client_uri", "client_secret_expires_at", "client_id_issued_at"];
    if forbidden.iter().any(|name| request.extra.contains_key(*name)) {
        return Err(invalid(
            "an update must not have registration_access_token, registration_client_uri, client_secret_expires_at and client_id_issued_at",
        ));
    }
    if request.extra.remove("client_id").is_none_or(|client_id| client_id != id) {
        return Err(invalid("an update must have the client_id of the registration"));
    }
    match request.extra.remove("client_secret") {
        None => Ok(None),
        Some(serde_json::Value::String(secret)) => Ok(Some(Secret::new(secret))),
        Some(_) => Err(invalid("client_secret must be a string")),
    }
}

const NO_ACCESS: ErrorResponse = ErrorResponse::new(
    ErrorCode::InvalidToken,
    "the registration is unknown here, or the bearer token is not its registration access token",
);

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClientMetadata, description)
}
