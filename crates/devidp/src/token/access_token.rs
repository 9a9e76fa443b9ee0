//! Creates and signs access tokens.

use portcullis_metadata::{AccessToken, Scopes};
use serde_json::{Map, Value, json};

use crate::{
    app::App,
    handle::{Handle, random_text},
    providers::profile::TokenFormat,
    server::oauth_error::{ErrorCode, ErrorResponse},
    token::session::Session,
};

/// An entry in the table of opaque access tokens.
pub(crate) struct OpaqueToken {
    pub(super) handle: Handle,
    /// The claims as JSON.
    pub(super) payload: Vec<u8>,
}

/// Issues an access token for a session with some of its scopes. `key` is the thumbprint of the DPoP key, if any.
pub(super) fn issue(
    app: &App,
    session: &Session,
    scopes: &Scopes,
    key: Option<&str>,
) -> Result<AccessToken, ErrorResponse> {
    let signing_failed = |error: &(dyn std::error::Error + 'static)| {
        tracing::error!(error, "cannot sign an access token");
        ErrorResponse::new(ErrorCode::ServerError, "the token could not be signed")
    };
    let payload = serde_json::to_vec(&claims(app, session, scopes, key)?).map_err(|error| signing_failed(&error))?;
    let prefix = match app.profile.token_format {
        TokenFormat::Opaque(prefix) => Some(prefix),
        TokenFormat::OpaqueWithoutAudience if session.audience.is_none() => Some(""),
        TokenFormat::OpaqueWithoutAudience | TokenFormat::Jwt => None,
    };
    if let Some(prefix) = prefix {
        let handle = Handle::generate()?;
        let (id, token) = (handle.id().to_owned(), format!("{prefix}{}", handle.as_str()));
        // Every entry is evictable, so this never fails.
        let _ = app.opaque_tokens.insert(&id, OpaqueToken { handle, payload }, |_| true);
        return Ok(AccessToken::new(token));
    }
    let settings = &app.settings;
    let keys = app.keys.current();
    let token = keys.signing_key(settings.signing_algorithm).sign(settings.token_header_type.as_str(), &payload);
    token.map(AccessToken::new).map_err(|error| signing_failed(&error))
}

/// Returns the claims of an access token (RFC 7519 section 4, RFC 9068 section 2.2), as the imitated provider names them.
fn claims(
    app: &App,
    session: &Session,
    scopes: &Scopes,
    key: Option<&str>,
) -> Result<Map<String, Value>, ErrorResponse> {
    let settings = &app.settings;
    let now = settings.clock.now();
    let issuer = app.token_issuer.as_deref().unwrap_or(app.issuer.as_str());
    let claims = [
        ("exp", json!(now.saturating_add(settings.access_token_lifetime).as_secs())),
        ("iat", json!(now.as_secs())),
        ("auth_time", json!(session.auth_time.as_secs())),
        ("jti", json!(random_text(16)?.as_str())),
        ("iss", json!(issuer)),
        ("sub", json!(session.subject)),
        ("typ", json!(if key.is_some() { "DPoP" } else { "Bearer" })),
        ("azp", json!(session.client_id)),
        ("client_id", json!(session.client_id)),
        ("sid", json!(session.id)),
        ("scope", json!(scopes.to_string())),
    ];
    let mut claims: Map<_, _> = claims.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    claims.extend(session.audience.as_ref().map(|audience| ("aud".to_owned(), json!(audience))));
    // The confirmation claim: the thumbprint of the DPoP key (RFC 9449 section 6.1).
    claims.extend(key.map(|jkt| ("cnf".to_owned(), json!({ "jkt": jkt }))));
    (app.profile.rewrite_claims)(&mut claims);
    claims.extend(settings.extra_claims.clone());
    Ok(claims)
}
