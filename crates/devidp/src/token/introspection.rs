use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{ErrorResponse, Params, introspect};

use crate::{
    app::App,
    authentication::authenticate_resource,
    server::respond::{Reply, json_error, json_reply},
};

/// Handles the introspection endpoint (RFC 7662 section 2). Everything except a valid access token
/// of this server is inactive.
pub(crate) async fn handle(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    respond(app, headers, form).await.unwrap_or_else(|error| {
        tracing::info!(
            introspection.error = error.code.as_str(),
            introspection.description = error.description,
            "rejected an introspection request"
        );
        json_error(error)
    })
}

async fn respond(app: &App, headers: &HeaderMap, form: &Params) -> Result<Reply, ErrorResponse> {
    let client_id = authenticate_resource(app, headers, form).await?;
    let response = introspect(app, &app.access_tokens, None, form).await?;
    tracing::info!(
        client.id = &*client_id,
        token.active = response.active,
        "introspected a token"
    );
    Ok(json_reply(StatusCode::OK, response.to_json()))
}
