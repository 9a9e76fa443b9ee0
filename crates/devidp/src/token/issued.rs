//! Verifies access tokens of this server.

use portcullis_jose::CompactJws;
use portcullis_metadata::AccessTokenClaims;

use crate::{app::App, handle::Handle, providers::profile::TokenFormat, tables::RowAction, token::session};

const MAX_TOKEN: usize = 16 * 1024;

/// Verifies an access token of this server and returns its claims. Returns `None` if it was not issued by this process or
/// has expired. Does not check whether it is revoked.
pub(crate) fn verify(app: &App, token: &str) -> Option<AccessTokenClaims> {
    let claims = match find_opaque(app, token) {
        Some(payload) => AccessTokenClaims::parse(&payload).ok()?,
        None => {
            let token = CompactJws::parse(token, MAX_TOKEN).ok()?;
            let keys = app.keys.current();
            let payload = keys.verifying.verify(&token).ok()?;
            AccessTokenClaims::parse(payload.bytes()).ok()?
        }
    };
    let is_valid = claims.exp.is_some_and(|end| app.settings.clock.now() < end);
    is_valid.then_some(claims)
}

/// Returns whether a token or its session is revoked.
pub(crate) fn is_revoked(app: &App, claims: &AccessTokenClaims) -> bool {
    // All issued tokens have an identifier. A token without one counts as revoked.
    let is_listed = |id| app.revoked.update(id, |()| ((), RowAction::Keep)).is_some();
    token_id(claims).is_none_or(is_listed)
        || session::session_id(claims).is_some_and(|session| session::is_withdrawn(app, session))
}

/// Returns the identifier of a token, whose claim has another name at some providers.
pub(crate) fn token_id(claims: &AccessTokenClaims) -> Option<&str> {
    claims.jti.as_deref().or_else(|| claims.extra.get("uti")?.as_str())
}

/// Returns the client of a token, whose claim has another name at some providers.
pub(crate) fn client_id(claims: &AccessTokenClaims) -> Option<&str> {
    let other = || ["cid", "appid"].into_iter().find_map(|name| claims.extra.get(name)?.as_str());
    claims.azp.as_deref().or(claims.client_id.as_deref()).or_else(other)
}

/// Returns the claims of an opaque token as JSON.
fn find_opaque(app: &App, token: &str) -> Option<Vec<u8>> {
    let presented = match app.profile.token_format {
        TokenFormat::Jwt => return None,
        TokenFormat::Opaque(prefix) => token.strip_prefix(prefix)?,
        TokenFormat::OpaqueWithoutAudience => token,
    };
    let presented = Handle::parse(presented)?;
    app.opaque_tokens.update(presented.id(), |token| {
        (presented.matches(&token.handle).then(|| token.payload.clone()), RowAction::Keep)
    })?
}
