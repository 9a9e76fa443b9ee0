//! The authorization code grant.

use portcullis_authorization_server::{ErrorCode, ErrorResponse, Policy};

use crate::{
    app::App,
    authorize::codes::CodeError,
    token::{Issued, TokenRequest, session::Session},
};

/// Exchanges a code for tokens (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
pub(super) fn exchange(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let missing = |description| ErrorResponse::new(ErrorCode::InvalidRequest, description);
    let invalid = |description| ErrorResponse::new(ErrorCode::InvalidGrant, description);
    let code = form.get("code")?.ok_or(missing("code is missing"))?;
    let verifier = form
        .get("code_verifier")?
        .ok_or(missing("PKCE is required: code_verifier is missing"))?;
    let redirect_uri = form.get("redirect_uri")?;
    app.config.check_single_resource(form)?;

    let approval = app.codes.redeem(code).map_err(|error| match error {
        CodeError::Unknown => invalid("the code is unknown or expired"),
        CodeError::Used(approval) => {
            app.sessions.withdraw(&approval.session_id);
            tracing::warn!(client.id = &*caller.id, "a code was used a second time");
            invalid("the code was used before")
        }
    })?;
    let request = &approval.request;
    if request.client_id != caller.id {
        return Err(invalid("the code was issued to another client"));
    }
    // OAuth 2.1 clients may omit `redirect_uri`. If it is present, it must be identical.
    if redirect_uri.is_some_and(|uri| uri != request.redirect.as_str()) {
        return Err(invalid(
            "redirect_uri is not that of the authorization request",
        ));
    }
    if !request.challenge.matches(verifier) {
        return Err(invalid("code_verifier does not match the code_challenge"));
    }
    app.config
        .check_audience(form, request.audience.as_deref())?;
    if request.key.is_some() && request.key != *key {
        return Err(invalid(
            "the code is bound to a DPoP key, but the request has no proof with that key",
        ));
    }
    let session = Session::new(
        &approval,
        key.clone().filter(|_| caller.client.credential.is_public()),
    );
    let refresh_token = approval
        .is_refreshable
        .then(|| app.sessions.issue_refresh_token(&session))
        .transpose()?;
    Issued::for_session(app, session, key.as_deref(), refresh_token)
}
