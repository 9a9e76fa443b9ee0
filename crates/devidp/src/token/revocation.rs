//! The revocation endpoint (RFC 7009).

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params, authentication::AuthenticatedClient,
};

use crate::{
    app::App,
    authentication::authenticate,
    server::respond::{Reply, json_error, plain},
    tables::TableFull,
    token::claims,
};

/// Handles the revocation endpoint (RFC 7009 section 2). A client can revoke only its own tokens.
/// The response for an invalid token is a success. Revoking a refresh token ends its session.
pub(crate) async fn revoke(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    match revoke_token(app, headers, form).await {
        Ok(()) => plain(StatusCode::OK, ""),
        Err(error) => {
            tracing::info!(
                revocation.error = error.code.as_str(),
                revocation.description = error.description,
                "rejected a revocation request"
            );
            json_error(error)
        }
    }
}

async fn revoke_token(app: &App, headers: &HeaderMap, form: &Params) -> Result<(), ErrorResponse> {
    let caller = authenticate(app, headers, form).await?;
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "token is missing");
    let token = form.get("token")?.ok_or(missing)?;
    if let Some(session) = app.sessions.find(token) {
        check_owner(&caller, &session.client_id)?;
        app.sessions.withdraw(&session.id);
    } else if let Some(claims) = app.access_tokens.verify(token) {
        check_owner(&caller, claims::client_id(&claims).unwrap_or_default())?;
        let full = "too many tokens are revoked; try again later";
        let full = ErrorResponse::new(ErrorCode::TemporarilyUnavailable, full);
        app.access_tokens
            .revoke(&claims)
            .map_err(|TableFull| full)?;
    } else {
        return Ok(());
    }
    tracing::info!(client.id = &*caller.id, "revoked a token");
    Ok(())
}

fn check_owner(caller: &AuthenticatedClient, client_id: &str) -> Result<(), ErrorResponse> {
    if *caller.id == *client_id {
        return Ok(());
    }
    Err(ErrorResponse::new(
        ErrorCode::InvalidRequest,
        "the token was issued to another client",
    ))
}
