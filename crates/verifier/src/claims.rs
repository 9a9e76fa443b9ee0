//! What the claims of a signed token have to say: issuer, audience, times.

use portcullis_metadata::{AccessTokenClaims, ResourceUri, UnixTime};

use crate::{IssuerSettings, Principal, VerifyError, kind};

/// Judges the claims of a token whose signature is that of `settings.issuer`.
pub(crate) fn judge(
    claims: AccessTokenClaims,
    settings: &IssuerSettings,
    resource: &ResourceUri,
    now: UnixTime,
) -> Result<Principal, VerifyError> {
    judge_issuer(&claims, settings)?;
    kind::judge_claims(&claims)?;
    judge_audience(&claims, settings, resource)?;
    let expires = judge_times(&claims, settings, now)?;
    Ok(Principal {
        issuer: settings.issuer.clone(),
        subject: claims.sub.map(Into::into),
        client: claims.client_id.or(claims.azp).map(Into::into),
        scopes: claims.scope,
        expires,
        claims: claims.extra,
        subjectless_client: settings.subjectless_client,
    })
}

/// The issuer was picked by a cheap look at `iss`; here the parsed claim is compared, as text.
fn judge_issuer(claims: &AccessTokenClaims, settings: &IssuerSettings) -> Result<(), VerifyError> {
    match claims.iss.as_deref() {
        Some(iss) if iss == settings.issuer.as_str() => Ok(()),
        Some(_) => Err(VerifyError::IssuerUnknown),
        None => Err(VerifyError::IssuerMissing),
    }
}

fn judge_audience(
    claims: &AccessTokenClaims,
    settings: &IssuerSettings,
    resource: &ResourceUri,
) -> Result<(), VerifyError> {
    let audience = claims.aud.as_ref().ok_or(VerifyError::AudienceMissing)?;
    let named = |entry: &str| {
        resource.matches_audience(entry) || settings.audiences.iter().any(|other| other.matches_audience(entry))
    };
    if audience.iter().any(named) { Ok(()) } else { Err(VerifyError::AudienceMismatch) }
}

/// Gives the expiry of a token that is valid now, give or take the leeway (RFC 7519 sections 4.1.4 to 4.1.6).
fn judge_times(claims: &AccessTokenClaims, settings: &IssuerSettings, now: UnixTime) -> Result<UnixTime, VerifyError> {
    let leeway = settings.leeway;
    let expires = claims.exp.ok_or(VerifyError::ExpiryMissing)?;
    if now >= expires.plus(leeway) {
        return Err(VerifyError::Expired);
    }
    if claims.nbf.is_some_and(|not_before| not_before > now.plus(leeway)) {
        return Err(VerifyError::NotYetValid);
    }
    if claims.iat.is_some_and(|issued| issued > now.plus(leeway)) {
        return Err(VerifyError::IssuedInFuture);
    }
    if let Some(longest) = settings.max_lifetime {
        let issued = claims.iat.ok_or(VerifyError::IssuedAtMissing)?;
        if expires.since(issued) > longest {
            return Err(VerifyError::LifetimeTooLong);
        }
    }
    Ok(expires)
}

#[cfg(test)]
mod tests;
