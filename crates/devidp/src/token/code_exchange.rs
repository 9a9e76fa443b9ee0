use crate::{
    GrantType,
    app::App,
    authorize::OFFLINE_ACCESS,
    code::{self, CodeError},
    oauth_error::{ErrorName, OAuthRefusal},
    refresh,
    session::Session,
    token::{Issued, TokenRequest, access_token, wrong_target},
};

/// Exchanges a code (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
pub(super) fn exchange(app: &App, asked: &TokenRequest<'_>) -> Result<Issued, OAuthRefusal> {
    let TokenRequest { caller, form, key } = asked;
    let missing = |description| OAuthRefusal::new(ErrorName::InvalidRequest, description);
    let invalid = |description| OAuthRefusal::new(ErrorName::InvalidGrant, description);
    let code = form.one("code")?.ok_or(missing("code is missing"))?;
    let verifier = form.one("code_verifier")?.ok_or(missing("PKCE is required: code_verifier is missing"))?;
    let redirect_uri = form.one("redirect_uri")?;
    let resource = form.one("resource").map_err(|_| wrong_target())?;

    let approval = code::redeem(app, code).map_err(|error| match error {
        CodeError::Unknown => invalid("the code is unknown or too old"),
        CodeError::Spent => {
            tracing::warn!(client.id = &*caller.id, "a code was presented a second time");
            invalid("the code was used before")
        }
    })?;
    let request = &approval.request;
    if request.client_id != caller.id {
        return Err(invalid("the code was issued to another client"));
    }
    // A client of OAuth 2.1 need not repeat it; one that does must repeat it exactly.
    if redirect_uri.is_some_and(|uri| uri != request.redirect.as_str()) {
        return Err(invalid("redirect_uri is not the one of the authorization request"));
    }
    if !request.challenge.matches(verifier) {
        return Err(invalid("code_verifier does not fit the code_challenge"));
    }
    if resource.is_some_and(|resource| resource != request.resource.as_str()) {
        return Err(wrong_target());
    }
    if request.key.is_some() && request.key != *key {
        return Err(invalid("the code is bound to a key that no DPoP proof shows"));
    }
    let session = Session::of(&approval, key.clone().filter(|_| caller.client.credential.is_public()));
    let refreshable = session.scopes.contains(OFFLINE_ACCESS) && caller.client.may_use(GrantType::RefreshToken);
    let refresh_token = refreshable.then(|| refresh::begin(app, &session)).transpose()?;
    Ok(Issued {
        access_token: access_token::sign(app, &session, &session.scopes, key.as_deref())?,
        scopes: session.scopes,
        refresh_token,
    })
}
