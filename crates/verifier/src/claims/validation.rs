//! Validation of the issuer, audience, times and type of a token.

use portcullis_metadata::{IntrospectionResponse, ResourceUri, UnixTime, UnverifiedClaims};

use super::{JsonClaims, scopes, token_type};
use crate::{
    error::VerifyError,
    principal::{Principal, PrincipalFields},
    settings::IssuerSettings,
};

/// Validates the claims of a token that `settings.issuer` signed, and creates its principal. The claims were parsed
/// from `payload`.
pub(crate) fn validate_signed(
    claims: &UnverifiedClaims<'_>,
    payload: &[u8],
    settings: &IssuerSettings,
    resource: &ResourceUri,
    now: UnixTime,
) -> Result<Principal, VerifyError> {
    let expires = validate(&Statement::of_token(claims, settings, resource), settings, now)?;
    let json = JsonClaims::new(payload.to_vec());
    Ok(Principal::new(PrincipalFields {
        issuer: settings.issuer.clone(),
        subject: claims.sub().map(Into::into),
        client: claims.client_id().or(claims.azp()).map(Into::into),
        scopes: scopes::of_token(claims, &json, settings)?,
        expires,
        valid_until: Some(expires.saturating_add(settings.leeway)),
        introspected_at: None,
        claims: json,
        subjectless_client: settings.subjectless_client,
    }))
}

/// The validated part of a token's claims or of an introspection response.
pub(crate) struct Statement<'a> {
    pub(crate) iss: Option<&'a str>,
    /// The claim, not the header member.
    pub(crate) typ: Option<&'a str>,
    /// Whether there is a claim that only other token types have.
    pub(crate) has_foreign_claim: bool,
    pub(crate) has_cnf: bool,
    /// What the audience names, or `None` if there is no audience.
    pub(crate) audience: Option<AudienceMatch>,
    /// Whether there is a claim that an ID token with the same audience lacks: scopes, `azp` or `appid`.
    pub(crate) has_access_claim: bool,
    pub(crate) exp: Option<UnixTime>,
    pub(crate) nbf: Option<UnixTime>,
    pub(crate) iat: Option<UnixTime>,
}

/// What the entries of an audience name. The last of these that an entry names counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AudienceMatch {
    /// Only others.
    Other,
    /// The resource, by the issuer's own name for it.
    Application,
    /// The resource, by one of its URLs.
    Resource,
}

impl<'a> Statement<'a> {
    pub(crate) fn of_token(
        claims: &'a UnverifiedClaims<'_>,
        settings: &IssuerSettings,
        resource: &ResourceUri,
    ) -> Self {
        let audience = claims.audience();
        Self {
            iss: claims.iss(),
            typ: claims.typ(),
            has_foreign_claim: token_type::FOREIGN_CLAIMS.iter().any(|name| claims.contains_unknown_claim(name)),
            has_cnf: claims.has_cnf(),
            audience: audience.map(|entries| match_audience(entries, settings, resource)),
            has_access_claim: claims.azp().is_some_and(|azp| !azp.is_empty())
                || claims.contains_unknown_claim(APPLICATION_ID)
                || claims.has_scope(),
            exp: claims.exp(),
            nbf: claims.nbf(),
            iat: claims.iat(),
        }
    }

    pub(crate) fn of_response(
        response: &'a IntrospectionResponse,
        typ: Option<&'a str>,
        settings: &IssuerSettings,
        resource: &ResourceUri,
    ) -> Self {
        let audience = response.aud.as_ref();
        Self {
            iss: response.iss.as_deref(),
            typ,
            has_foreign_claim: token_type::FOREIGN_CLAIMS.iter().any(|name| response.extra.contains_key(*name)),
            has_cnf: response.cnf.is_some(),
            audience: audience.map(|entries| match_audience(entries.iter(), settings, resource)),
            has_access_claim: response.azp.as_ref().is_some_and(|azp| !azp.is_empty())
                || response.extra.contains_key(APPLICATION_ID)
                || response.scope.as_ref().is_some_and(|scopes| !scopes.is_empty()),
            exp: response.exp,
            nbf: response.nbf,
            iat: response.iat,
        }
    }
}

/// The client in access tokens of Microsoft Entra ID, version 1.0.
const APPLICATION_ID: &str = "appid";

fn match_audience<'e>(
    entries: impl Iterator<Item = &'e str>,
    settings: &IssuerSettings,
    resource: &ResourceUri,
) -> AudienceMatch {
    let entries = entries.map(|entry| {
        if resource.matches_audience(entry) || settings.audiences.iter().any(|other| other.matches_audience(entry)) {
            AudienceMatch::Resource
        } else if settings.application_audiences.iter().any(|name| name.matches(entry)) {
            AudienceMatch::Application
        } else {
            AudienceMatch::Other
        }
    });
    entries.max().unwrap_or(AudienceMatch::Other)
}

/// Validates a statement of `settings.issuer` about a token and returns the token's expiration time.
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

pub(crate) fn check_issuer(statement: &Statement<'_>, settings: &IssuerSettings) -> Result<(), VerifyError> {
    match statement.iss {
        Some(iss) if iss == settings.issuer.as_str() => Ok(()),
        Some(_) => Err(VerifyError::IssuerUnknown),
        None => Err(VerifyError::IssuerMissing),
    }
}

pub(crate) fn check_audience(statement: &Statement<'_>) -> Result<(), VerifyError> {
    match statement.audience {
        Some(AudienceMatch::Resource | AudienceMatch::Application) => Ok(()),
        Some(AudienceMatch::Other) => Err(VerifyError::AudienceMismatch),
        None => Err(VerifyError::AudienceMissing),
    }
}

/// Checks the times with the issuer's leeway (RFC 7519 sections 4.1.4 to 4.1.6) and returns the expiration time.
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
    if statement.nbf.is_some_and(|not_before| not_before > now.saturating_add(leeway)) {
        return Err(VerifyError::NotYetValid);
    }
    if statement.iat.is_some_and(|issued| issued > now.saturating_add(leeway)) {
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

#[cfg(test)]
mod tests;
