//! The refresh token grant.

use portcullis_authorization_server::{ErrorCode, ErrorResponse, Policy};

use crate::{
    app::App,
    token::{Issued, TokenRequest, session::Session},
};

/// Exchanges a refresh token for a new access token and the next refresh token (RFC 6749 section 6,
/// OAuth 2.1).
pub(super) fn refresh(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "refresh_token is missing");
    let presented = form.get("refresh_token")?.ok_or(missing)?;
    let requested = app.config.refresh_scopes(form)?;

    let check = |session: &Session| {
        if session.client_id != caller.id {
            return Err(invalid_grant(
                "the refresh token was issued to another client",
            ));
        }
        if session.key.is_some() && session.key != *key {
            return Err(invalid_grant(
                "the refresh token is bound to a DPoP key, but the request has no proof with that key",
            ));
        }
        app.config
            .check_audience(form, session.audience.as_deref())?;
        match &requested {
            Some(scopes) if scopes.is_empty() || !session.scopes.covers(scopes) => {
                Err(invalid_scope("scope has a scope that was not granted"))
            }
            _ => Ok(()),
        }
    };
    let (session, refresh_token) = app.sessions.rotate(presented, check)?;
    // Only this access token has fewer scopes. The session keeps all granted scopes.
    let scopes = requested.unwrap_or_else(|| session.scopes.clone());
    Ok(Issued {
        access_token: app.access_tokens.issue(&session, &scopes, key.as_deref())?,
        scopes,
        refresh_token,
    })
}

const fn invalid_grant(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}

const fn invalid_scope(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidScope, description)
}
