//! The refresh token grant.

use portcullis_metadata::Scopes;

use crate::{
    app::App,
    server::oauth_error::{ErrorCode, ErrorResponse},
    token::{Issued, TokenRequest, access_token, refresh_token, resource_mismatch, session::Session},
};

/// Exchanges a refresh token for a new access token and the next refresh token (RFC 6749 section 6, OAuth 2.1).
pub(super) fn refresh(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "refresh_token is missing");
    let presented = form.get("refresh_token")?.ok_or(missing)?;
    let requested = form.get("scope")?.map(Scopes::parse).transpose();
    let requested = requested.map_err(|_| invalid_scope("scope has a character that is not allowed in scope names"))?;
    let resource = form.get("resource").map_err(|_| resource_mismatch())?;

    let check = |session: &Session| {
        if session.client_id != caller.id {
            return Err(invalid_grant("the refresh token was issued to another client"));
        }
        if session.key.is_some() && session.key != *key {
            return Err(invalid_grant(
                "the refresh token is bound to a DPoP key, but the request has no proof with that key",
            ));
        }
        if resource.is_some_and(|resource| resource != session.resource.as_str()) {
            return Err(resource_mismatch());
        }
        match &requested {
            Some(scopes) if scopes.is_empty() || !session.scopes.covers(scopes) => {
                Err(invalid_scope("scope has a scope that was not granted"))
            }
            _ => Ok(()),
        }
    };
    let (session, refresh_token) = refresh_token::rotate(app, presented, check)?;
    // Only this access token has fewer scopes. The session keeps all granted scopes.
    let scopes = requested.unwrap_or_else(|| session.scopes.clone());
    Ok(Issued {
        access_token: access_token::sign(app, &session, &scopes, key.as_deref())?,
        scopes,
        refresh_token: Some(refresh_token),
    })
}

const fn invalid_grant(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}

const fn invalid_scope(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidScope, description)
}
