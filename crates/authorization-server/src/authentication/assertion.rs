//! Signed assertions (RFC 7523), and the rejection of their reuse.

use std::time::Duration;

use portcullis_jose::{CompactJws, KeySet};
use portcullis_metadata::{AccessTokenClaims, UnixTime};

use crate::store::Store;

/// The maximum size of an assertion in bytes.
pub const MAX_ASSERTION: usize = 16 * 1024;
/// The maximum remaining lifetime of an assertion, and the time for which its identifier must be
/// remembered.
pub const MAX_ASSERTION_LIFETIME: Duration = Duration::from_secs(3600);
/// The time by which `nbf` and `iat` of an assertion may be in the future.
const LEEWAY: Duration = Duration::from_secs(10);
/// The maximum size of an assertion's identifier in bytes.
const MAX_JTI: usize = 256;

/// Why an assertion is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.description())]
#[non_exhaustive]
pub enum AssertionError {
    /// It is not signed with a key of its issuer.
    Signature,
    /// Its claims are malformed.
    Claims,
    /// Its audience is another one, or one of several.
    Audience,
    /// It has no expiry.
    NoExpiry,
    /// It has expired.
    Expired,
    /// It is valid for too long.
    Lifetime,
    /// It is not valid yet.
    NotYetValid,
    /// It has no usable identifier.
    Identifier,
    /// It was used before.
    Used,
    /// Its use cannot be recorded now.
    NotRecorded,
}

impl AssertionError {
    /// Returns a sentence for the client's developer, without a capital letter.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Signature => "the assertion is not signed with a known key of its issuer",
            Self::Claims => "the assertion's claims are malformed",
            Self::Audience => "the assertion's aud must be exactly the expected audience",
            Self::NoExpiry => "the assertion has no exp",
            Self::Expired => "the assertion has expired",
            Self::Lifetime => "the assertion is valid for more than an hour",
            Self::NotYetValid => "the assertion is not valid yet",
            Self::Identifier => "the assertion must have a jti of 1 to 256 bytes",
            Self::Used => "the assertion was used before",
            Self::NotRecorded => "too many assertions are remembered; try again later",
        }
    }
}

/// Verifies an assertion (RFC 7523 section 3) and returns its claims.
///
/// Checks the signature, the times and the audience, which must be exactly `audience`. For
/// assertions this is the issuer identifier of the server (draft-ietf-oauth-rfc7523bis). Does not
/// check the subject, nor whether the assertion was used before; see [`use_assertion`].
///
/// # Errors
/// Fails when one of these is wrong, or the assertion is valid for more than
/// [`MAX_ASSERTION_LIFETIME`].
pub fn verify_assertion(
    keys: &KeySet,
    assertion: &CompactJws<'_>,
    audience: &str,
    now: UnixTime,
) -> Result<AccessTokenClaims, AssertionError> {
    verify_assertion_for(keys, assertion, &[audience], now)
}

/// Like [`verify_assertion`], but the audience is one of several.
pub(super) fn verify_assertion_for(
    keys: &KeySet,
    assertion: &CompactJws<'_>,
    audiences: &[&str],
    now: UnixTime,
) -> Result<AccessTokenClaims, AssertionError> {
    let payload = keys
        .verify(assertion)
        .map_err(|_| AssertionError::Signature)?;
    let claims = AccessTokenClaims::parse(payload.bytes()).map_err(|_| AssertionError::Claims)?;
    let entries: Vec<_> = claims
        .aud
        .iter()
        .flat_map(|audience| audience.iter())
        .collect();
    let is_expected = matches!(entries.as_slice(), [entry] if audiences.contains(entry));
    if !is_expected {
        return Err(AssertionError::Audience);
    }
    let end = claims.exp.ok_or(AssertionError::NoExpiry)?;
    if end <= now {
        return Err(AssertionError::Expired);
    }
    if end > now.saturating_add(MAX_ASSERTION_LIFETIME) {
        return Err(AssertionError::Lifetime);
    }
    let latest = now.saturating_add(LEEWAY);
    if claims.nbf.is_some_and(|begin| begin > latest)
        || claims.iat.is_some_and(|made| made > latest)
    {
        return Err(AssertionError::NotYetValid);
    }
    Ok(claims)
}

/// Records the use of a verified assertion by its issuer and `jti` (RFC 7523 section 3).
///
/// # Errors
/// Fails when the assertion has no `jti`, was used before, or its use cannot be recorded.
pub async fn use_assertion(
    store: &impl Store,
    claims: &AccessTokenClaims,
) -> Result<(), AssertionError> {
    let jti = claims
        .jti
        .as_deref()
        .filter(|jti| (1..=MAX_JTI).contains(&jti.len()))
        .ok_or(AssertionError::Identifier)?;
    let issuer = claims.iss.as_deref().unwrap_or_default();
    match store.use_assertion(issuer, jti).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(AssertionError::Used),
        Err(_) => Err(AssertionError::NotRecorded),
    }
}

/// Returns whether a token has the type `JWT` or none (RFC 7519 section 5.1).
pub fn is_plain_jwt(token: &CompactJws<'_>) -> bool {
    token
        .header()
        .typ()
        .is_none_or(|typ| typ.eq_ignore_ascii_case("JWT"))
}
