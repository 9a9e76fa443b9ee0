//! Creates and signs access tokens.

use portcullis_metadata::{AccessToken, Scopes};
use serde::Serialize;

use crate::{
    app::App,
    handle::random_text,
    server::oauth_error::{ErrorCode, ErrorResponse},
    token::session::Session,
};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    cnf: Option<Confirmation<'a>>,
}

/// The confirmation claim: the thumbprint of the DPoP key (RFC 9449 section 6.1).
#[derive(Serialize)]
struct Confirmation<'a> {
    jkt: &'a str,
}

/// Signs an access token for a session with some of its scopes. `key` is the thumbprint of the DPoP key, if any.
pub(super) fn sign(
    app: &App,
    session: &Session,
    scopes: &Scopes,
    key: Option<&str>,
) -> Result<AccessToken, ErrorResponse> {
    let settings = &app.settings;
    let now = settings.clock.now();
    let claims = Claims {
        exp: now.saturating_add(settings.access_token_lifetime).as_secs(),
        iat: now.as_secs(),
        auth_time: session.auth_time.as_secs(),
        jti: &random_text(16)?,
        iss: app.issuer.as_str(),
        aud: session.resource.as_str(),
        sub: &session.subject,
        typ: if key.is_some() { "DPoP" } else { "Bearer" },
        azp: &session.client_id,
        client_id: &session.client_id,
        sid: &session.id,
        scope: scopes.to_string(),
        cnf: key.map(|jkt| Confirmation { jkt }),
    };
    let signing_failed = |error: &(dyn std::error::Error + 'static)| {
        tracing::error!(error, "cannot sign an access token");
        ErrorResponse::new(ErrorCode::ServerError, "the token could not be signed")
    };
    let payload = serde_json::to_vec(&claims).map_err(|error| signing_failed(&error))?;
    let keys = app.keys.current();
    let token = keys.signing_key(settings.signing_algorithm).sign(settings.token_header_type.as_str(), &payload);
    token.map(AccessToken::new).map_err(|error| signing_failed(&error))
}
