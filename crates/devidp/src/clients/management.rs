//! Management of registrations (RFC 7592).

use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse,
    client::{NewClient, RegistrationRules, parse_registration},
};
use portcullis_metadata::{Secret, client::ClientMetadata};

use crate::{
    app::App,
    authentication::bearer::bearer_token,
    clients::{
        registration::adapt_method,
        registration_token::{RegistrationTokenHash, generate_registration_token},
        registry::RegisteredClient,
    },
    server::respond::{Reply, json_error, json_reply, plain},
    tables::RowAction,
};

/// Handles the client configuration endpoint (RFC 7592 section 2): `GET` reads a registration,
/// `PUT` replaces it, and `DELETE` deletes it. The registration access token is required.
pub(crate) fn manage(
    app: &App,
    id: &str,
    method: &Method,
    headers: &HeaderMap,
    body: &[u8],
) -> Reply {
    let managed = match *method {
        Method::PUT => update(app, id, headers, body),
        Method::DELETE => delete(app, id, headers),
        _ => read(app, id, headers),
    };
    managed.unwrap_or_else(|error| {
        tracing::info!(
            registration.error = error.code.as_str(),
            registration.description = error.description,
            "rejected a request to manage a registration"
        );
        json_error(error)
    })
}

/// Returns the registration (RFC 7592 section 2.1). The response repeats the token of the request,
/// because only its hash is stored.
fn read(app: &App, id: &str, headers: &HeaderMap) -> Result<Reply, ErrorResponse> {
    let token = bearer_token(headers).ok_or(NO_TOKEN)?;
    let mut information = with_client(app, id, &token, |registered| {
        (registered.information.clone(), RowAction::Keep)
    })?;
    information.registration_access_token = Some(token);
    Ok(json_reply(StatusCode::OK, information.to_json()))
}

/// Replaces the registration and its registration access token (RFC 7592 section 2.2). Omitted
/// members get their default.
fn update(app: &App, id: &str, headers: &HeaderMap, body: &[u8]) -> Result<Reply, ErrorResponse> {
    let token = bearer_token(headers).ok_or(NO_TOKEN)?;
    let client = with_client(app, id, &token, |registered| {
        (Arc::clone(&registered.client), RowAction::Keep)
    })?;
    let mut metadata = parse_registration(body)?;
    let secret = check_update(id, &mut metadata)?;
    adapt_method(
        &mut metadata,
        app.config.settings.client_authentication_mode,
    );
    let NewClient {
        client,
        mut information,
    } = NewClient::from_metadata(
        metadata,
        RegistrationRules::Strict,
        Some(&client.credential),
    )?;
    let next_token = generate_registration_token()?;
    let next_hash = RegistrationTokenHash::of(&next_token);
    let updated = with_client(app, id, &token, |registered| {
        if secret.is_some() && secret != registered.information.client_secret {
            return (
                Err(invalid(
                    "client_secret is not the current one: a client cannot choose its secret",
                )),
                RowAction::Keep,
            );
        }
        information
            .client_id
            .clone_from(&registered.information.client_id);
        information.client_id_issued_at = registered.information.client_id_issued_at;
        information
            .registration_client_uri
            .clone_from(&registered.information.registration_client_uri);
        (registered.client, registered.registration_token) = (Arc::new(client), Some(next_hash));
        registered.information = information.clone();
        (Ok(()), RowAction::Renew)
    })?;
    updated?;
    tracing::info!(client.id = id, "updated a registration");
    information.registration_access_token = Some(next_token);
    Ok(json_reply(StatusCode::OK, information.to_json()))
}

/// Deletes the registration (RFC 7592 section 2.3), as [`forget`] does.
fn delete(app: &App, id: &str, headers: &HeaderMap) -> Result<Reply, ErrorResponse> {
    let token = bearer_token(headers).ok_or(NO_TOKEN)?;
    with_client(app, id, &token, |_| ((), RowAction::Keep))?;
    forget(app, id);
    tracing::info!(client.id = id, "deleted a registration");
    Ok(plain(StatusCode::NO_CONTENT, ""))
}

/// Forgets a registered client, its codes and device authorizations, and its sessions with refresh
/// tokens, which end. Returns whether the client was registered. Access tokens of other sessions
/// stay active until they expire.
pub(crate) fn forget(app: &App, id: &str) -> bool {
    let is_removed = app.clients.remove_registered(id);
    if is_removed {
        app.codes.remove_client(id);
        app.devices.remove_client(id);
        app.sessions.withdraw_client(id);
    }
    is_removed
}

/// Calls `f` with a registered client if the token is its registration access token. RFC 7592
/// requires the same error for unknown clients.
fn with_client<R>(
    app: &App,
    id: &str,
    token: &Secret,
    f: impl FnOnce(&mut RegisteredClient) -> (R, RowAction),
) -> Result<R, ErrorResponse> {
    let result = app.clients.update_registered(id, |registered| {
        let original = registered.registration_token.as_ref();
        if !original.is_some_and(|original| original.matches(token)) {
            return (None, RowAction::Keep);
        }
        let (result, action) = f(registered);
        (Some(result), action)
    });
    result.flatten().ok_or(NO_ACCESS)
}

/// Checks the members that an update must and must not have. Takes `client_id` and the client
/// secret out of the metadata, and returns the secret, if present.
fn check_update(id: &str, metadata: &mut ClientMetadata) -> Result<Option<Secret>, ErrorResponse> {
    let forbidden = [
        "registration_access_token",
        "registration_client_uri",
        "client_secret_expires_at",
        "client_id_issued_at",
    ];
    if forbidden
        .iter()
        .any(|name| metadata.extra.contains_key(*name))
    {
        return Err(invalid(
            "an update must not have registration_access_token, registration_client_uri, client_secret_expires_at and client_id_issued_at",
        ));
    }
    if metadata
        .extra
        .remove("client_id")
        .is_none_or(|client_id| client_id != id)
    {
        return Err(invalid(
            "an update must have the client_id of the registration",
        ));
    }
    match metadata.extra.remove("client_secret") {
        None => Ok(None),
        Some(serde_json::Value::String(secret)) => Ok(Some(Secret::new(secret))),
        Some(_) => Err(invalid("client_secret must be a string")),
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClientMetadata, description)
}

const NO_ACCESS: ErrorResponse = ErrorResponse::new(
    ErrorCode::InvalidToken,
    "the registration is unknown here, or the bearer token is not its registration access token",
);

const NO_TOKEN: ErrorResponse = ErrorResponse::new(
    ErrorCode::MissingToken,
    "the registration access token is required as a bearer token",
);
