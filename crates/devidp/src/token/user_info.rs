//! The userinfo endpoint (OpenID Connect Core section 5.3).

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{ErrorCode, ErrorResponse};
use serde_json::Value;

use crate::{
    app::App,
    authentication::bearer::bearer_token,
    server::respond::{Reply, json_error, json_reply},
    token::{id_tokens::OPENID, user_access},
    users,
};

/// Responds with the claims about the user of the bearer token that its scopes request.
pub(crate) async fn handle(app: &App, headers: &HeaderMap) -> Reply {
    respond(app, headers).await.unwrap_or_else(|error| {
        tracing::info!(
            userinfo.error = error.code.as_str(),
            userinfo.description = error.description,
            "rejected a userinfo request"
        );
        json_error(error)
    })
}

async fn respond(app: &App, headers: &HeaderMap) -> Result<Reply, ErrorResponse> {
    let missing = ErrorResponse::new(
        ErrorCode::MissingToken,
        "an access token is required as a bearer token",
    );
    let invalid = ErrorResponse::new(
        ErrorCode::InvalidToken,
        "the access token is not a valid one of a user",
    );
    let presented = bearer_token(headers).ok_or(missing)?;
    let access = user_access::find(app, presented.secret()).await?;
    let access = access.ok_or(invalid)?;
    let scopes = &access.token.claims.scope;
    if !scopes.contains(OPENID) {
        let description = "the access token does not have the scope openid";
        return Err(ErrorResponse::new(
            ErrorCode::InsufficientScope,
            description,
        ));
    }
    let mut claims = users::claims::of_user(&app.config.settings, &access.subject);
    (app.config.profile.user_info_claims)(&mut claims);
    users::claims::retain_granted(&mut claims, scopes);
    let body = Value::Object(claims).to_string().into_bytes();
    Ok(json_reply(StatusCode::OK, body))
}
