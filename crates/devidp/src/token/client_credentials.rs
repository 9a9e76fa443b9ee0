use crate::{
    app::App,
    authorize::{resource_of, scopes_of},
    client_authentication::Caller,
    form::Params,
    handle::random_text,
    oauth_error::OAuthRefusal,
    session::Session,
    token::{Issued, access_token},
};

/// Gives a client a token for itself (RFC 6749 section 4.4). Its subject is the client (RFC 9068 section 2.2), and there is no
/// refresh token.
pub(super) fn grant(app: &App, caller: &Caller, form: &Params) -> Result<Issued, OAuthRefusal> {
    let session = Session {
        id: random_text(16)?.as_str().into(),
        client_id: caller.id.clone(),
        subject: caller.id.clone(),
        auth_time: app.settings.clock.unix(),
        scopes: scopes_of(app, &caller.client, form)?,
        resource: resource_of(form, app.settings.default_resource.as_ref())?,
        key: None,
    };
    Ok(Issued {
        access_token: access_token::sign(app, &session, &session.scopes, None)?,
        scopes: session.scopes,
        refresh_token: None,
    })
}
