//! The client credentials grant.

use portcullis_authorization_server::{ErrorResponse, Grant, Policy, random_secret};

use crate::{
    app::App,
    token::{Issued, TokenRequest},
};

/// Issues an access token whose subject is the client itself (RFC 6749 section 4.4, RFC 9068
/// section 2.2). There is no refresh token.
pub(super) fn grant(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let grant = Grant {
        id: random_secret(16)?.secret().into(),
        client_id: caller.id.clone(),
        subject: caller.id.clone(),
        auth_time: app.config.now(),
        scopes: app.config.scopes(&caller.client, form)?,
        audience: app.config.audience(form)?,
        key: None,
    };
    Issued::for_grant(app, grant, key.as_deref(), None)
}
