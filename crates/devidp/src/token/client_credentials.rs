//! The client credentials grant.

use portcullis_authorization_server::{ErrorCode, ErrorResponse, Grant, Policy, random_secret};

use crate::{
    app::App,
    authorize::scopes::user_scopes,
    token::{Issued, TokenRequest},
};

/// Issues an access token whose subject is the client itself (RFC 6749 section 4.4, RFC 9068
/// section 2.2). There is no refresh token.
pub(super) fn grant(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let scopes = app.config.scopes(&caller.client, form)?;
    let scopes = scopes.difference(&user_scopes(&app.config, &scopes));
    if scopes.is_empty() {
        let description = "the requested scopes are about a user, and this grant has none";
        return Err(ErrorResponse::new(ErrorCode::InvalidScope, description));
    }
    let grant = Grant {
        id: random_secret(16)?.secret().into(),
        client_id: caller.id.clone(),
        subject: caller.id.clone(),
        auth_time: app.config.now(),
        scopes,
        audience: app.config.audience(form)?,
        key: None,
    };
    Issued::without_sign_in(app, grant, key.as_deref())
}
