//! Verifies access tokens of this server.

use portcullis_jose::CompactJws;
use portcullis_metadata::AccessTokenClaims;

use crate::{app::App, tables::RowAction, token::session};

const MAX_TOKEN: usize = 16 * 1024;

/// Verifies an access token of this server and returns its claims. Returns `None` if it was not issued by this process or
/// has expired. Does not check whether it is revoked.
pub(crate) fn verify(app: &App, token: &str) -> Option<AccessTokenClaims> {
    let token = CompactJws::parse(token, MAX_TOKEN).ok()?;
    let keys = app.keys.current();
    let payload = keys.verifying.verify(&token).ok()?;
    let claims = AccessTokenClaims::parse(payload.bytes()).ok()?;
    let is_valid = claims.exp.is_some_and(|end| app.settings.clock.now() < end);
    is_valid.then_some(claims)
}

/// Returns whether a token or its session is revoked.
pub(crate) fn is_revoked(app: &App, claims: &AccessTokenClaims) -> bool {
    // All issued tokens have a `jti`. A token without one counts as revoked.
    let is_listed = |jti| app.revoked.update(jti, |()| ((), RowAction::Keep)).is_some();
    claims.jti.as_deref().is_none_or(is_listed)
        || session::session_id(claims).is_some_and(|session| session::is_withdrawn(app, session))
}
