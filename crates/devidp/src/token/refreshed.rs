use portcullis_metadata::Scopes;

use crate::{
    app::App,
    oauth_error::{ErrorName, OAuthRefusal},
    refresh,
    session::Session,
    token::{Issued, TokenRequest, access_token, wrong_target},
};

/// Gives a new access token and the next refresh token for a refresh token (RFC 6749 section 6, OAuth 2.1).
pub(super) fn refresh(app: &App, asked: &TokenRequest<'_>) -> Result<Issued, OAuthRefusal> {
    let TokenRequest { caller, form, key } = asked;
    let missing = OAuthRefusal::new(ErrorName::InvalidRequest, "refresh_token is missing");
    let presented = form.one("refresh_token")?.ok_or(missing)?;
    let requested = form.one("scope")?.map(Scopes::parse).transpose();
    let requested = requested.map_err(|_| scope("scope has a character that scope names cannot have"))?;
    let resource = form.one("resource").map_err(|_| wrong_target())?;

    let judge = |session: &Session| {
        if session.client_id != caller.id {
            return Err(grant("the refresh token was issued to another client"));
        }
        if session.key.is_some() && session.key != *key {
            return Err(grant("the refresh token is bound to a key that no DPoP proof shows"));
        }
        if resource.is_some_and(|resource| resource != session.resource.as_str()) {
            return Err(wrong_target());
        }
        match &requested {
            Some(scopes) if scopes.is_empty() || !session.scopes.covers(scopes) => {
                Err(scope("scope has a name that was not granted"))
            }
            _ => Ok(()),
        }
    };
    let (session, refresh_token) = refresh::rotate(app, presented, judge)?;
    // Less for this access token; the session keeps what it was granted.
    let scopes = requested.unwrap_or_else(|| session.scopes.clone());
    Ok(Issued {
        access_token: access_token::sign(app, &session, &scopes, key.as_deref())?,
        scopes,
        refresh_token: Some(refresh_token),
    })
}

const fn grant(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidGrant, description)
}

const fn scope(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidScope, description)
}
