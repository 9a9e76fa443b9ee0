//! What the claims of a signed token have to say: issuer, audience, times.

use portcullis_metadata::{IntrospectionResponse, ResourceUri, UnixTime, UnverifiedClaims};

use crate::{IssuerSettings, Principal, VerifyError, kind, principal::PrincipalFields, said::Said};

/// Checks the claims of a token whose signature is that of `settings.issuer`. They were parsed from `payload`.
pub(crate) fn judge_token(
    claims: &UnverifiedClaims<'_>,
    payload: &[u8],
    settings: &IssuerSettings,
    resource: &ResourceUri,
    now: UnixTime,
) -> Result<Principal, VerifyError> {
    let expires = judge(&Statement::of_token(claims, settings, resource), settings, now)?;
    Ok(Principal::new(PrincipalFields {
        issuer: settings.issuer.clone(),
        subject: claims.sub().map(Into::into),
        client: claims.client_id().or(claims.azp()).map(Into::into),
        scopes: claims.scopes()?,
        expires,
        valid_until: Some(expires.saturating_add(settings.leeway)),
        introspected_at: None,
        said: Said::in_object(payload.to_vec()),
        subjectless_client: settings.subjectless_client,
    }))
}

/// What a token's claims say, or its issuer about it, as far as that is judged.
pub(crate) struct Statement<'a> {
    pub(crate) iss: Option<&'a str>,
    /// The claim, not the header's member.
    pub(crate) typ: Option<&'a str>,
    /// Whether it has a claim that only other kinds of token carry.
    pub(crate) tells_another_kind: bool,
    pub(crate) has_cnf: bool,
    /// Whether the token is for the resource; none where nobody says for whom it is.
    pub(crate) is_for_us: Option<bool>,
    pub(crate) exp: Option<UnixTime>,
    pub(crate) nbf: Option<UnixTime>,
    pub(crate) iat: Option<UnixTime>,
}

impl<'a> Statement<'a> {
    /// What the claims of a token say.
    pub(crate) fn of_token(
        claims: &'a UnverifiedClaims<'_>,
        settings: &IssuerSettings,
        resource: &ResourceUri,
    ) -> Self {
        Self {
            iss: claims.iss(),
            typ: claims.typ(),
            tells_another_kind: kind::TELLING_CLAIMS.iter().any(|name| claims.contains_unknown_claim(name)),
            has_cnf: claims.has_cnf(),
            is_for_us: claims.audience().map(|mut entries| entries.any(|entry| names(entry, settings, resource))),
            exp: claims.exp(),
            nbf: claims.nbf(),
            iat: claims.iat(),
        }
    }

    /// What an issuer says about a token.
    pub(crate) fn of_answer(
        answer: &'a IntrospectionResponse,
        typ: Option<&'a str>,
        settings: &IssuerSettings,
        resource: &ResourceUri,
    ) -> Self {
        let audience = answer.aud.as_ref();
        Self {
            iss: answer.iss.as_deref(),
            typ,
            tells_another_kind: kind::TELLING_CLAIMS.iter().any(|name| answer.extra.contains_key(*name)),
            has_cnf: answer.cnf.is_some(),
            is_for_us: audience.map(|entries| entries.iter().any(|entry| names(entry, settings, resource))),
            exp: answer.exp,
            nbf: answer.nbf,
            iat: answer.iat,
        }
    }
}

/// Whether an entry of the audience names the resource, by one of its addresses.
fn names(entry: &str, settings: &IssuerSettings, resource: &ResourceUri) -> bool {
    resource.matches_audience(entry) || settings.audiences.iter().any(|other| other.matches_audience(entry))
}

/// Judges what is said of a token that was picked for `settings.issuer`, and gives the token's expiry.
pub(crate) fn judge(
    statement: &Statement<'_>,
    settings: &IssuerSettings,
    now: UnixTime,
) -> Result<UnixTime, VerifyError> {
    judge_issuer(statement, settings)?;
    kind::judge_claims(statement)?;
    judge_audience(statement)?;
    judge_times(statement, settings, now)
}

pub(crate) fn judge_issuer(said: &Statement<'_>, settings: &IssuerSettings) -> Result<(), VerifyError> {
    match said.iss {
        Some(iss) if iss == settings.issuer.as_str() => Ok(()),
        Some(_) => Err(VerifyError::IssuerUnknown),
        None => Err(VerifyError::IssuerMissing),
    }
}

pub(crate) fn judge_audience(said: &Statement<'_>) -> Result<(), VerifyError> {
    match said.is_for_us {
        Some(true) => Ok(()),
        Some(false) => Err(VerifyError::AudienceMismatch),
        None => Err(VerifyError::AudienceMissing),
    }
}

/// Gives the expiry of a token that is valid now, give or take the leeway (RFC 7519 sections 4.1.4 to 4.1.6).
pub(crate) fn judge_times(
    said: &Statement<'_>,
    settings: &IssuerSettings,
    now: UnixTime,
) -> Result<UnixTime, VerifyError> {
    let leeway = settings.leeway;
    let expires = said.exp.ok_or(VerifyError::ExpiryMissing)?;
    if now >= expires.saturating_add(leeway) {
        return Err(VerifyError::Expired);
    }
    if said.nbf.is_some_and(|not_before| not_before > now.saturating_add(leeway)) {
        return Err(VerifyError::NotYetValid);
    }
    if said.iat.is_some_and(|issued| issued > now.saturating_add(leeway)) {
        return Err(VerifyError::IssuedInFuture);
    }
    if let Some(longest) = settings.max_lifetime {
        let issued = said.iat.ok_or(VerifyError::IssuedAtMissing)?;
        if expires.saturating_duration_since(issued) > longest {
            return Err(VerifyError::LifetimeTooLong);
        }
    }
    Ok(expires)
}

#[cfg(test)]
mod tests;
