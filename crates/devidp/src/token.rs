use http::{HeaderMap, StatusCode};
use portcullis_metadata::{AccessToken, TokenResponse};
use serde::Serialize;

use crate::{
    app::App,
    client_authentication::authenticate,
    code::{self, Approval, CodeError},
    form::Params,
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
    respond::{Reply, json_refusal, json_reply},
};

/// Answers the token endpoint: exchanges a code for an access token (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
pub(crate) fn exchange(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    token_for(app, headers, form).unwrap_or_else(|refusal| {
        tracing::info!(
            token.error = refusal.error.as_str(),
            token.refused = refusal.description,
            "refused a token request"
        );
        json_refusal(refusal)
    })
}

fn token_for(app: &App, headers: &HeaderMap, form: &Params) -> Result<Reply, OAuthRefusal> {
    let missing = |description| OAuthRefusal::new(ErrorName::InvalidRequest, description);
    match form.one("grant_type")? {
        Some("authorization_code") => {}
        Some(_) => {
            let description = "the only grant type here is authorization_code";
            return Err(OAuthRefusal::new(ErrorName::UnsupportedGrantType, description));
        }
        None => return Err(missing("grant_type is missing")),
    }
    let client_id = authenticate(app, headers, form)?;
    let code = form.one("code")?.ok_or(missing("code is missing"))?;
    let verifier = form.one("code_verifier")?.ok_or(missing("PKCE is required: code_verifier is missing"))?;
    let redirect_uri = form.one("redirect_uri")?;
    let resource = form.one("resource").map_err(|_| wrong_target())?;

    let invalid = |description| OAuthRefusal::new(ErrorName::InvalidGrant, description);
    let approval = code::redeem(app, code).map_err(|error| match error {
        CodeError::Unknown => invalid("the code is unknown or too old"),
        CodeError::Spent => {
            tracing::warn!(client.id = &*client_id, "a code was presented a second time");
            invalid("the code was used before")
        }
    })?;
    let request = &approval.request;
    if request.client_id != client_id {
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
    let access_token = sign(app, &approval)?;
    tracing::info!(client.id = &*client_id, "issued an access token");
    let response = TokenResponse {
        expires_in: Some(app.settings.access_token_lifetime.as_secs()),
        scope: Some(request.scopes.to_string()),
        ..TokenResponse::bearer(access_token)
    };
    Ok(json_reply(StatusCode::OK, response.to_json()))
}

const fn wrong_target() -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidTarget, "resource is not the one of the authorization request")
}

/// The claims of an access token (RFC 7519 section 4, RFC 9068 section 2.2).
#[derive(Serialize)]
struct Claims<'a> {
    exp: u64,
    iat: u64,
    auth_time: u64,
    jti: &'a str,
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    typ: &'static str,
    azp: &'a str,
    client_id: &'a str,
    sid: &'a str,
    scope: String,
}

fn sign(app: &App, approval: &Approval) -> Result<AccessToken, OAuthRefusal> {
    let settings = &app.settings;
    let now = settings.clock.unix();
    let claims = Claims {
        exp: now.plus(settings.access_token_lifetime).as_secs(),
        iat: now.as_secs(),
        auth_time: approval.auth_time.as_secs(),
        jti: &random_text(16)?,
        iss: app.issuer.as_str(),
        aud: approval.request.resource.as_str(),
        sub: &approval.subject,
        typ: "Bearer",
        azp: &approval.request.client_id,
        client_id: &approval.request.client_id,
        sid: &approval.session_id,
        scope: approval.request.scopes.to_string(),
    };
    let key = app.keys.of(settings.signing_algorithm);
    let not_signed = |error: &(dyn std::error::Error + 'static)| {
        tracing::error!(error, "cannot sign an access token");
        OAuthRefusal::new(ErrorName::ServerError, "the token could not be signed")
    };
    let payload = serde_json::to_vec(&claims).map_err(|error| not_signed(&error))?;
    let token = key.sign(settings.token_header_type.as_str(), &payload).map_err(|error| not_signed(&error))?;
    Ok(AccessToken::new(token))
}
