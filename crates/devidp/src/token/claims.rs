//! The claims of this server's access tokens: how they are created and read.

use portcullis_authorization_server::{Grant, RandomError, random_secret};
use portcullis_metadata::{AccessTokenClaims, Scopes};
use serde_json::{Map, Value, json};

use crate::config::Config;

/// Returns the claims of a new access token (RFC 7519 section 4, RFC 9068 section 2.2), as the
/// imitated provider names them. `key` is the thumbprint of the DPoP key, if any.
pub(super) fn create(
    config: &Config,
    grant: &Grant,
    scopes: &Scopes,
    key: Option<&str>,
) -> Result<Map<String, Value>, RandomError> {
    let settings = &config.settings;
    let now = config.now();
    let claims = [
        (
            "exp",
            json!(now.saturating_add(settings.access_token_lifetime).as_secs()),
        ),
        ("iat", json!(now.as_secs())),
        ("auth_time", json!(grant.auth_time.as_secs())),
        ("jti", json!(random_secret(16)?.secret())),
        ("iss", json!(config.token_issuer)),
        ("sub", json!(grant.subject)),
        ("typ", json!(if key.is_some() { "DPoP" } else { "Bearer" })),
        ("azp", json!(grant.client_id)),
        ("client_id", json!(grant.client_id)),
        ("sid", json!(grant.id)),
        ("scope", json!(scopes.to_string())),
    ];
    let mut claims: Map<_, _> = claims
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    claims.extend(
        grant
            .audience
            .as_ref()
            .map(|audience| ("aud".to_owned(), json!(audience))),
    );
    // The confirmation claim: the thumbprint of the DPoP key (RFC 9449 section 6.1).
    claims.extend(key.map(|jkt| ("cnf".to_owned(), json!({ "jkt": jkt }))));
    (config.profile.rewrite_claims)(&mut claims);
    claims.extend(settings.extra_claims.clone());
    Ok(claims)
}

/// Returns the identifier of a token, whose claim has another name at some providers.
pub(super) fn token_id(claims: &AccessTokenClaims) -> Option<&str> {
    let other = || {
        ["uti", "uid"]
            .into_iter()
            .find_map(|name| claims.extra.get(name)?.as_str())
    };
    claims.jti.as_deref().or_else(other)
}

/// Returns the client of a token, whose claim has another name at some providers.
pub(super) fn client_id(claims: &AccessTokenClaims) -> Option<&str> {
    let other = || {
        ["cid", "appid"]
            .into_iter()
            .find_map(|name| claims.extra.get(name)?.as_str())
    };
    claims
        .azp
        .as_deref()
        .or(claims.client_id.as_deref())
        .or_else(other)
}

/// Returns the identifier of a token's grant.
pub(super) fn session_id(claims: &AccessTokenClaims) -> Option<&str> {
    claims.extra.get("sid")?.as_str()
}
