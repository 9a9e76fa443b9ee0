use portcullis_metadata::Scopes;

use crate::{
    app::App,
    client_authentication::Caller,
    form::Params,
    oauth_error::{ErrorName, OAuthRefusal},
    refresh,
    session::Session,
    token::{Issued, access_token, wrong_target},
};

/// Gives a new access token and the next refresh token for a refresh token (RFC 6749 section 6, OAuth 2.1).
pub(super) fn refresh(app: &App, caller: &Caller, form: &Params) -> Result<Issued, OAuthRefusal> {
    let missing = OAuthRefusal::new(ErrorName::InvalidRequest, "refresh_token is missing");
    let presented = form.one("refresh_token")?.ok_or(missing)?;
    let requested = form.one("scope")?.map(Scopes::parse).transpose();
    let requested = requested.map_err(|_| scope("scope has a character that scope names cannot have"))?;
    let resource = form.one("resource").map_err(|_| wrong_target())?;

    let judge = |session: &Session| {
        if session.client_id != caller.id {
            let description = "the refresh token was issued to another client";
            return Err(OAuthRefusal::new(ErrorName::InvalidGrant, description));
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
        access_token: access_token::sign(app, &session, &scopes, None)?,
        scopes,
        refresh_token: Some(refresh_token),
    })
}

const fn scope(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidScope, description)
}
