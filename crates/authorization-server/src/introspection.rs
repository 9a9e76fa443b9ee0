//! The introspection endpoint (RFC 7662).

use portcullis_metadata::{AccessTokenClaims, IntrospectionResponse};
use serde_json::Value;

use crate::{
    error::{ErrorCode, ErrorResponse},
    issued_token::TokenVerifier,
    params::Params,
    store::Store,
};

/// Introspects the token in a form for an authenticated resource (RFC 7662 section 2). Everything
/// except a valid access token of this server is inactive, and so is a token for another audience
/// than `audience`, unless that is `None` (section 4).
///
/// # Errors
/// Fails with `invalid_request` when `token` is missing, and when the store cannot be read.
pub async fn introspect(
    store: &impl Store,
    tokens: &impl TokenVerifier,
    audience: Option<&str>,
    form: &Params,
) -> Result<IntrospectionResponse, ErrorResponse> {
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "token is missing");
    let token = form.get("token")?.ok_or(missing)?;
    match tokens.verify(token) {
        Some(token) if is_for(&token.claims, audience) && store.is_active(&token).await? => {
            Ok(active_response(token.claims, token.client_id))
        }
        _ => Ok(IntrospectionResponse::default()),
    }
}

fn is_for(claims: &AccessTokenClaims, audience: Option<&str>) -> bool {
    audience.is_none_or(|audience| {
        let mut entries = claims.aud.iter().flat_map(|aud| aud.iter());
        entries.any(|entry| entry == audience)
    })
}

fn active_response(claims: AccessTokenClaims, client_id: Box<str>) -> IntrospectionResponse {
    let mut extra = claims.extra;
    if let Some(typ) = claims.typ {
        extra.insert("typ".to_owned(), Value::String(typ));
    }
    IntrospectionResponse {
        active: true,
        aud: claims.aud,
        client_id: Some(client_id.into()),
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
