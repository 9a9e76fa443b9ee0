use crate::{
    app::App,
    authorize::{resource_of, scopes_of},
    handle::random_text,
    oauth_error::OAuthRefusal,
    session::Session,
    token::{Issued, TokenRequest, access_token},
};

/// Gives a client a token for itself (RFC 6749 section 4.4). Its subject is the client (RFC 9068 section 2.2), and there is no
/// refresh token.
pub(super) fn grant(app: &App, asked: &TokenRequest<'_>) -> Result<Issued, OAuthRefusal> {
    let TokenRequest { caller, form, key } = asked;
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
        access_token: access_token::sign(app, &session, &session.scopes, key.as_deref())?,
        scopes: session.scopes,
        refresh_token: None,
    })
}
