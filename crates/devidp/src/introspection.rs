use http::{HeaderMap, StatusCode};
use portcullis_metadata::{AccessTokenClaims, IntrospectionResponse};
use serde_json::Value;

use crate::{
    app::App,
    client_authentication::authenticate_resource,
    form::Params,
    issued,
    oauth_error::{ErrorName, OAuthRefusal},
    respond::{Reply, json_refusal, json_reply},
};

/// Answers the introspection endpoint (RFC 7662 section 2). What is no living access token of this server is inactive,
/// without a reason.
pub(crate) fn introspect(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    answer(app, headers, form).unwrap_or_else(|refusal| {
        tracing::info!(
            introspection.error = refusal.error.as_str(),
            introspection.refused = refusal.description,
            "refused an introspection request"
        );
        json_refusal(refusal)
    })
}

fn answer(app: &App, headers: &HeaderMap, form: &Params) -> Result<Reply, OAuthRefusal> {
    let client_id = authenticate_resource(app, headers, form)?;
    let missing = OAuthRefusal::new(ErrorName::InvalidRequest, "token is missing");
    let token = form.one("token")?.ok_or(missing)?;
    let response =
        issued::read(app, token).filter(|claims| !issued::is_revoked(app, claims)).map(active).unwrap_or_default();
    tracing::info!(client.id = &*client_id, token.active = response.active, "introspected a token");
    Ok(json_reply(StatusCode::OK, response.to_json()))
}

fn active(claims: AccessTokenClaims) -> IntrospectionResponse {
    let mut extra = claims.extra;
    if let Some(typ) = claims.typ {
        extra.insert("typ".to_owned(), Value::String(typ));
    }
    IntrospectionResponse {
        active: true,
        aud: claims.aud,
        client_id: claims.client_id,
        scope: Some(claims.scope),
        exp: claims.exp,
        nbf: claims.nbf,
        iat: claims.iat,
        iss: claims.iss,
        username: claims.sub.clone(),
        sub: claims.sub,
        token_type: Some(if claims.cnf.is_some() { "DPoP" } else { "Bearer" }.to_owned()),
        jti: claims.jti,
        azp: claims.azp,
        cnf: claims.cnf,
        extra,
    }
}
