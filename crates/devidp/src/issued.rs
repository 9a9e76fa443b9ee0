use portcullis_jose::Compact;
use portcullis_metadata::AccessTokenClaims;

use crate::{app::App, session, tables::Keep};

const MAX_TOKEN: usize = 16 * 1024;

/// The claims of an access token that this server issued in this run and that has not expired. Whether it was given up is
/// not judged.
pub(crate) fn read(app: &App, token: &str) -> Option<AccessTokenClaims> {
    let token = Compact::parse(token, MAX_TOKEN).ok()?;
    let keys = app.keys.current();
    let payload = keys.verifying.verify(&token).ok()?;
    let claims = AccessTokenClaims::parse(payload.bytes()).ok()?;
    let lives = claims.exp.is_some_and(|end| app.settings.clock.unix() < end);
    lives.then_some(claims)
}

/// Whether a token was given up, or its session withdrawn.
pub(crate) fn is_revoked(app: &App, claims: &AccessTokenClaims) -> bool {
    // A token without an identifier could not have been remembered; none is issued.
    let given_up = |jti| app.revoked.look_up(jti, |()| ((), Keep::AsItWas)).is_some();
    claims.jti.as_deref().is_none_or(given_up)
        || session::named_by(claims).is_some_and(|session| session::is_withdrawn(app, session))
}
