use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{ErrorResponse, Params, revoke};

use crate::{
    app::App,
    authentication::authenticate,
    server::respond::{Reply, json_error, plain},
};

/// Handles the revocation endpoint (RFC 7009 section 2). A client can revoke only its own tokens.
/// The response for an invalid token is a success. Revoking a refresh token ends its session.
pub(crate) async fn handle(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
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
    if revoke(app, &app.access_tokens, &caller.id, form).await? {
        tracing::info!(client.id = &*caller.id, "revoked a token");
    }
    Ok(())
}
