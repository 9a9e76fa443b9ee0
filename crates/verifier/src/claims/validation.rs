//! The validation of a statement about a token: issuer, type, audience and times.

use portcullis_metadata::{ResourceUri, UnixTime, UnverifiedClaims};

use super::{
    scopes,
    statement::{AudienceMatch, Statement},
    token_type,
};
use crate::{
    error::VerifyError,
    json_claims::JsonClaims,
    principal::{Principal, PrincipalFields, non_empty},
    settings::IssuerSettings,
};

/// Validates the claims of a token that `settings.issuer` signed, and creates its principal. The
/// claims were parsed from `payload`. Fails as [`validate`] does, and if `scope` or `scp` is
/// malformed.
pub(crate) fn validate_signed(
    claims: &UnverifiedClaims<'_>,
    payload: &[u8],
    settings: &IssuerSettings,
    resource: &ResourceUri,
    now: UnixTime,
) -> Result<Principal, VerifyError> {
    let expires = validate(
        &Statement::of_token(claims, settings, resource),
        settings,
        now,
    )?;
    let json = JsonClaims::new(payload.to_vec());
    Ok(Principal::new(PrincipalFields {
        issuer: settings.issuer.clone(),
        subject: non_empty(claims.sub()),
        client: non_empty(claims.client_id()).or_else(|| non_empty(claims.azp())),
        scopes: scopes::of_token(claims, &json, settings)?,
        expires,
        valid_until: Some(expires.saturating_add(settings.leeway)),
        introspected_at: None,
        claims: json,
        subjectless_client: settings.subjectless_client,
    }))
}

/// Validates a statement of `settings.issuer` about a token and returns the token's expiration
/// time. Scopes are not checked. Returns the first violation, in this order: issuer, type,
/// audience, times.
pub(crate) fn validate(
    statement: &Statement<'_>,
    settings: &IssuerSettings,
    now: UnixTime,
) -> Result<UnixTime, VerifyError> {
    check_issuer(statement, settings)?;
    token_type::check_claims(statement)?;
    check_audience(statement)?;
    check_times(statement, settings, now)
}

/// Checks that `iss` is the issuer, byte for byte (RFC 9068 section 4).
pub(crate) fn check_issuer(
    statement: &Statement<'_>,
    settings: &IssuerSettings,
) -> Result<(), VerifyError> {
    match statement.iss {
        Some(iss) if iss == settings.issuer.as_str() => Ok(()),
        Some(_) => Err(VerifyError::IssuerUnknown),
        None => Err(VerifyError::IssuerMissing),
    }
}

/// Checks that the audience names the resource (RFC 9068 section 4).
pub(crate) fn check_audience(statement: &Statement<'_>) -> Result<(), VerifyError> {
    match statement.audience {
        Some(AudienceMatch::Resource | AudienceMatch::Application) => Ok(()),
        Some(AudienceMatch::Other) => Err(VerifyError::AudienceMismatch),
        None => Err(VerifyError::AudienceMissing),
    }
}

/// Checks the times with the issuer's leeway (RFC 7519 sections 4.1.4 to 4.1.6) and returns the
/// expiration time.
pub(crate) fn check_times(
    statement: &Statement<'_>,
    settings: &IssuerSettings,
    now: UnixTime,
) -> Result<UnixTime, VerifyError> {
    let leeway = settings.leeway;
    let expires = statement.exp.ok_or(VerifyError::ExpiryMissing)?;
    if now >= expires.saturating_add(leeway) {
        return Err(VerifyError::Expired);
    }
    if statement
        .nbf
        .is_some_and(|not_before| not_before > now.saturating_add(leeway))
    {
        return Err(VerifyError::NotYetValid);
    }
    if statement
        .iat
        .is_some_and(|issued| issued > now.saturating_add(leeway))
    {
        return Err(VerifyError::IssuedInFuture);
    }
    if let Some(max_lifetime) = settings.max_lifetime {
        let issued = statement.iat.ok_or(VerifyError::IssuedAtMissing)?;
        if expires.saturating_duration_since(issued) > max_lifetime {
            return Err(VerifyError::LifetimeTooLong);
        }
    }
    Ok(expires)
}
