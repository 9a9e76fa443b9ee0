//! [`LogoutToken`]: a provider's statement that a session has ended.

use std::{fmt, time::Duration};

use portcullis_metadata::UnixTime;
use serde_json::Value;

use super::{IdTokenError, claims::SignedClaims};
use crate::{error::VerifyError, settings::IssuerSettings};

/// The member of `events` that makes a token a logout token.
const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// The maximum age of a logout token, beside the leeway. Providers send them at once.
const MAX_AGE: Duration = Duration::from_secs(5 * 60);

/// A verified logout token. `Debug` prints no claims.
#[derive(Clone, PartialEq, Eq)]
pub struct LogoutToken {
    /// The identifier of the token.
    pub jti: Box<str>,
    /// The session that has ended. `None` for all sessions of the user.
    pub sid: Option<Box<str>>,
    /// The user whose session has ended, if the token names it.
    pub sub: Option<Box<str>>,
    /// When the token is no longer accepted, so that its `jti` can be forgotten.
    pub expires: UnixTime,
}

impl fmt::Debug for LogoutToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogoutToken").finish_non_exhaustive()
    }
}

/// Checks the claims of a logout token. An access token or an ID token has no logout event, and so
/// is rejected.
pub(super) fn check_logout_claims(
    claims: SignedClaims,
    settings: &IssuerSettings,
    client_id: &str,
    now: UnixTime,
) -> Result<LogoutToken, IdTokenError> {
    claims.check_origin(settings, client_id)?;
    let issued_at = claims.check_not_in_future(settings, now)?;
    let latest = issued_at
        .saturating_add(MAX_AGE)
        .saturating_add(settings.leeway);
    let expires = claims.exp.map_or(latest, |exp| {
        latest.min(exp.saturating_add(settings.leeway))
    });
    if now >= expires {
        return Err(VerifyError::Expired.into());
    }
    let has_event = claims
        .all
        .get("events")
        .and_then(|events| events.get(LOGOUT_EVENT))
        .is_some_and(Value::is_object);
    if !has_event || claims.all.contains_key("nonce") {
        return Err(IdTokenError::NotALogoutToken);
    }
    let identifier = |name| {
        claims
            .identifier(name)
            .map(|id| id.map(Box::from))
            .map_err(|()| IdTokenError::NotALogoutToken)
    };
    let jti = identifier("jti")?.ok_or(IdTokenError::NotALogoutToken)?;
    let (sid, sub) = (identifier("sid")?, identifier("sub")?);
    if sid.is_none() && sub.is_none() {
        return Err(IdTokenError::NotALogoutToken);
    }
    Ok(LogoutToken {
        jti,
        sid,
        sub,
        expires,
    })
}
