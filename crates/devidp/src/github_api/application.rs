//! The API with which an application revokes its tokens.

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    IssuedToken, Params, Store as _, TokenVerifier as _, authentication::PresentedCredential,
    client::ClientDirectory as _,
};
use serde::Deserialize;

use crate::{
    app::App,
    github_api::{ApiRequest, reply::ApiError},
    server::respond::{Reply, plain},
};

#[derive(Deserialize)]
struct TokenBody {
    access_token: String,
}

/// Revokes one token of the application.
pub(super) async fn delete_token(
    app: &App,
    client: &str,
    request: &ApiRequest<'_>,
) -> Result<Reply, ApiError> {
    let token = application_token(app, client, request).await?;
    let id = token.id.as_deref().ok_or(ApiError::NotFound)?;
    let revoked = app.revoke_access_token(id).await;
    revoked.map_err(|_| ApiError::Failed)?;
    tracing::info!(client.id = client, "an application revoked a token");
    Ok(plain(StatusCode::NO_CONTENT, ""))
}

/// Ends the session of a token, and the sessions with refresh tokens that its user has with the
/// application.
pub(super) async fn delete_grant(
    app: &App,
    client: &str,
    request: &ApiRequest<'_>,
) -> Result<Reply, ApiError> {
    let token = application_token(app, client, request).await?;
    let grant = token.grant_id.as_deref().ok_or(ApiError::NotFound)?;
    app.end_grant(grant).await.map_err(|_| ApiError::Failed)?;
    if let Some(subject) = token.claims.sub.as_deref() {
        app.sessions.withdraw_user(subject, Some(client));
    }
    tracing::info!(client.id = client, "an application ended an approval");
    Ok(plain(StatusCode::NO_CONTENT, ""))
}

/// Authenticates the application, and returns the token in the body, which must be one of its own
/// that is valid.
async fn application_token(
    app: &App,
    client: &str,
    request: &ApiRequest<'_>,
) -> Result<IssuedToken, ApiError> {
    if !is_authenticated(app, client, request.headers).await {
        return Err(ApiError::NotFound);
    }
    let body: TokenBody =
        serde_json::from_slice(request.body).map_err(|_| ApiError::Unprocessable)?;
    let token = app.access_tokens.verify(&body.access_token);
    let token = token.filter(|token| *token.client_id == *client);
    let token = token.ok_or(ApiError::NotFound)?;
    match app.is_active(&token).await {
        Ok(true) => Ok(token),
        Ok(false) => Err(ApiError::NotFound),
        Err(_) => Err(ApiError::Failed),
    }
}

/// Returns whether the request has the identifier and the secret of this client for HTTP Basic
/// authentication, however the client authenticates at the token endpoint.
async fn is_authenticated(app: &App, client: &str, headers: &HeaderMap) -> bool {
    let no_form = Params::parse(b"");
    let Ok(presented) = PresentedCredential::parse(headers, &no_form) else {
        return false;
    };
    let Ok(found) = app.clients.find(presented.id(), headers).await else {
        return false;
    };
    let registered = found.credential.secret();
    presented.id() == client && registered.is_some() && registered == presented.secret()
}
