use std::time::Duration;

use portcullis_jose::{Compact, KeySet};
use portcullis_metadata::AccessTokenClaims;

use crate::app::App;

/// How long an assertion is at most.
pub(crate) const MAX_ASSERTION: usize = 16 * 1024;
/// How far ahead an assertion may end, and so how long its identifier is remembered.
pub(crate) const MAX_LIFETIME: Duration = Duration::from_secs(3600);
/// How far the clock of whoever made the assertion may be ahead.
const LEEWAY: Duration = Duration::from_secs(10);
const MAX_JTI: usize = 256;

/// Verifies what somebody signed for this request (RFC 7523 section 3), and returns its claims.
///
/// Its audience is the expected one and nothing else: for assertions the issuer identifier of this server
/// (draft-ietf-oauth-rfc7523bis). Whom it speaks for is the caller's to judge, and whether it was used before is judged by
/// [`use_once`]. The error is a sentence for the developer of the client.
pub(crate) fn verified(
    app: &App,
    keys: &KeySet,
    assertion: &Compact<'_>,
    expected: &str,
) -> Result<AccessTokenClaims, &'static str> {
    let payload =
        keys.verify(assertion).map_err(|_| "the assertion is not signed with a key that is known for its issuer")?;
    let claims = AccessTokenClaims::parse(payload.bytes()).map_err(|_| "the assertion's claims are malformed")?;
    let audience: Vec<_> = claims.aud.iter().flat_map(|audience| audience.iter()).collect();
    if audience != [expected] {
        return Err("the assertion's aud is not the one that is expected here alone");
    }
    let now = app.settings.clock.unix();
    let end = claims.exp.ok_or("the assertion has no exp")?;
    if end <= now {
        return Err("the assertion has expired");
    }
    if end > now.plus(MAX_LIFETIME) {
        return Err("the assertion lives for more than an hour");
    }
    let latest = now.plus(LEEWAY);
    if claims.nbf.is_some_and(|begin| begin > latest) || claims.iat.is_some_and(|made| made > latest) {
        return Err("the assertion is not valid yet");
    }
    Ok(claims)
}

/// Remembers an assertion by its issuer and `jti` until it cannot be used again, and refuses one that was used before.
pub(crate) fn use_once(app: &App, claims: &AccessTokenClaims) -> Result<(), &'static str> {
    let jti = claims.jti.as_deref().filter(|jti| (1..=MAX_JTI).contains(&jti.len()));
    let jti = jti.ok_or("the assertion has no jti of 1 to 256 bytes")?;
    let issuer = claims.iss.as_deref().unwrap_or_default();
    match app.used_assertions.insert_new(&format!("{issuer}\n{jti}"), ()) {
        Ok(true) => Ok(()),
        Ok(false) => Err("the assertion was used before"),
        Err(_) => Err("too many assertions are remembered; come again later"),
    }
}
