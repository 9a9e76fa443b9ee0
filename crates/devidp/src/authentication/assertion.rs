//! Signed assertions (RFC 7523).

use std::time::Duration;

use portcullis_jose::{CompactJws, KeySet};
use portcullis_metadata::AccessTokenClaims;

use crate::app::App;

/// The maximum size of an assertion in bytes.
pub(crate) const MAX_ASSERTION: usize = 16 * 1024;
/// The maximum remaining lifetime of an assertion, and the time for which its identifier is remembered.
pub(crate) const MAX_LIFETIME: Duration = Duration::from_secs(3600);
/// The accepted clock difference to the issuer of an assertion.
const LEEWAY: Duration = Duration::from_secs(10);
const MAX_JTI: usize = 256;

/// Verifies an assertion (RFC 7523 section 3) and returns its claims.
///
/// Checks the signature, the times and the audience, which must be exactly `expected`. For assertions this is the issuer
/// identifier of this server (draft-ietf-oauth-rfc7523bis). Does not check the subject, nor whether the assertion was used
/// before; see [`use_once`]. The error is a sentence for the client's developer.
pub(crate) fn verify(
    app: &App,
    keys: &KeySet,
    assertion: &CompactJws<'_>,
    expected: &str,
) -> Result<AccessTokenClaims, &'static str> {
    let payload = keys.verify(assertion).map_err(|_| "the assertion is not signed with a known key of its issuer")?;
    let claims = AccessTokenClaims::parse(payload.bytes()).map_err(|_| "the assertion's claims are malformed")?;
    let audience: Vec<_> = claims.aud.iter().flat_map(|audience| audience.iter()).collect();
    if audience != [expected] {
        return Err("the assertion's aud must be exactly the expected audience");
    }
    let now = app.settings.clock.now();
    let end = claims.exp.ok_or("the assertion has no exp")?;
    if end <= now {
        return Err("the assertion has expired");
    }
    if end > now.saturating_add(MAX_LIFETIME) {
        return Err("the assertion is valid for more than an hour");
    }
    let latest = now.saturating_add(LEEWAY);
    if claims.nbf.is_some_and(|begin| begin > latest) || claims.iat.is_some_and(|made| made > latest) {
        return Err("the assertion is not valid yet");
    }
    Ok(claims)
}

/// Rejects an assertion that was used before. Remembers its issuer and `jti` until it expires.
pub(crate) fn use_once(app: &App, claims: &AccessTokenClaims) -> Result<(), &'static str> {
    let jti = claims.jti.as_deref().filter(|jti| (1..=MAX_JTI).contains(&jti.len()));
    let jti = jti.ok_or("the assertion must have a jti of 1 to 256 bytes")?;
    let issuer = claims.iss.as_deref().unwrap_or_default();
    match app.used_assertions.insert_new(&format!("{issuer}\n{jti}"), ()) {
        Ok(true) => Ok(()),
        Ok(false) => Err("the assertion was used before"),
        Err(_) => Err("too many assertions are remembered; try again later"),
    }
}
