//! The introspection endpoint (RFC 7662).

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{ErrorCode, ErrorResponse, Params};
use portcullis_metadata::{AccessTokenClaims, IntrospectionResponse};
use serde_json::Value;

use crate::{
    app::App,
    authentication::authenticate_resource,
    server::respond::{Reply, json_error, json_reply},
    token::claims,
};

/// Handles the introspection endpoint (RFC 7662 section 2). Everything except a valid access token
/// of this server is inactive.
pub(crate) async fn introspect(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
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
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "token is missing");
    let token = form.get("token")?.ok_or(missing)?;
    let response = app
        .access_tokens
        .verify(token)
        .filter(|claims| !is_revoked(app, claims))
        .map(active_response)
        .unwrap_or_default();
    tracing::info!(
        client.id = &*client_id,
        token.active = response.active,
        "introspected a token"
    );
    Ok(json_reply(StatusCode::OK, response.to_json()))
}

/// Returns whether a token or its session is revoked.
fn is_revoked(app: &App, claims: &AccessTokenClaims) -> bool {
    app.access_tokens.is_revoked(claims)
        || claims::session_id(claims).is_some_and(|session| app.sessions.is_withdrawn(session))
}

fn active_response(claims: AccessTokenClaims) -> IntrospectionResponse {
    let client_id = claims::client_id(&claims).map(str::to_owned);
    let mut extra = claims.extra;
    if let Some(typ) = claims.typ {
        extra.insert("typ".to_owned(), Value::String(typ));
    }
    IntrospectionResponse {
        active: true,
        aud: claims.aud,
        client_id,
        scope: Some(claims.scope),
        exp: claims.exp,
        nbf: claims.nbf,
        iat: claims.iat,
        iss: claims.iss,
        username: claims.sub.clone(),
        sub: claims.sub,
        token_type: Some(
            if claims.cnf.is_some() {
                "DPoP"
            } else {
                "Bearer"
            }
            .to_owned(),
        ),
        jti: claims.jti,
        azp: claims.azp,
        cnf: claims.cnf,
        extra,
    }
}
