//! The device code grant (RFC 8628 section 3.4).

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Grant, random_secret, token::GrantedTokens,
};

use crate::{
    app::App,
    handle::Handle,
    token::{Issued, TokenRequest},
};

/// Exchanges a device code for tokens once the user has approved it. A device code can be used
/// once.
pub(super) fn exchange(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "device_code is missing");
    let presented = form.get("device_code")?.ok_or(missing)?;
    let malformed = ErrorResponse::new(
        ErrorCode::InvalidGrant,
        "the device code is unknown, expired or used",
    );
    let presented = Handle::parse(presented).ok_or(malformed)?;
    let id = random_secret(16)?.secret().into();

    let approved = app.devices.poll(&presented, &caller.id)?;
    if app.removed_users.contains(&approved.subject) {
        let description = "the user was removed";
        return Err(ErrorResponse::new(ErrorCode::AccessDenied, description));
    }
    let grant = Grant {
        id,
        client_id: approved.request.client_id,
        subject: approved.subject,
        auth_time: approved.auth_time,
        scopes: approved.request.scopes,
        audience: approved.request.audience,
        key: key.clone().filter(|_| caller.client.credential.is_public()),
    };
    let refresh_token = approved
        .request
        .is_refreshable
        .then(|| app.sessions.issue_refresh_token(&grant))
        .transpose()?;
    let granted = GrantedTokens {
        scopes: grant.scopes.clone(),
        grant,
        refresh_token,
    };
    Issued::for_user(app, granted, key.as_deref())
}
