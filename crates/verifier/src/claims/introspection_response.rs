use portcullis_metadata::{IntrospectionResponse, Now, ResourceUri, Scopes, UnixTime};

use super::{scopes, statement::Statement, validation::validate};
use crate::{
    error::VerifyError,
    json_claims::JsonClaims,
    principal::{Principal, PrincipalFields, non_empty},
    settings::IssuerSettings,
};

/// Validates the introspection response of `settings.issuer` and creates the token's principal.
///
/// The rules are those for signed tokens, except that `iss` and `exp` are optional. Without `exp`,
/// the token expires at `default_expiry`. Fails if the token is not active, or with the first
/// violation of a rule.
pub(crate) fn validate_response(
    response: &IntrospectionResponse,
    settings: &IssuerSettings,
    resource: &ResourceUri,
    now: Now,
    default_expiry: UnixTime,
) -> Result<ValidResponse, VerifyError> {
    if !response.active {
        return Err(VerifyError::Inactive);
    }
    if response
        .iss
        .as_deref()
        .is_some_and(|iss| iss != settings.issuer.as_str())
    {
        return Err(VerifyError::IssuerMismatch);
    }
    check_token_type(response.token_type.as_deref())?;
    let mut statement = Statement::of_response(response, settings, resource)?;
    statement.iss.get_or_insert(settings.issuer.as_str());
    statement.exp.get_or_insert(default_expiry);
    let expires = validate(&statement, settings, now.unix)?;
    let json = JsonClaims::new(response.to_json());
    let scopes = scopes::of_response(response, &json, settings);
    let principal = Principal::new(PrincipalFields {
        issuer: settings.issuer.clone(),
        subject: non_empty(response.sub.as_deref()),
        client: non_empty(response.client_id.as_deref())
            .or_else(|| non_empty(response.azp.as_deref())),
        scopes: scopes.clone().unwrap_or_default(),
        expires,
        valid_until: response.exp.map(|exp| exp.saturating_add(settings.leeway)),
        introspected_at: Some(now.monotonic),
        claims: json,
        subjectless_client: settings.subjectless_client,
    });
    Ok(ValidResponse { principal, scopes })
}

/// What a valid introspection response states.
pub(crate) struct ValidResponse {
    pub(crate) principal: Principal,
    /// The scopes, or `None` if the response has no member with scopes.
    pub(crate) scopes: Option<Scopes>,
}

/// Checks `token_type`, the only member by which some servers distinguish ID tokens and refresh
/// tokens.
fn check_token_type(token_type: Option<&str>) -> Result<(), VerifyError> {
    match token_type {
        None => Ok(()),
        Some(name) if name.eq_ignore_ascii_case("Bearer") => Ok(()),
        // Such a token is sender-constrained even if the response has no `cnf` (RFC 9449 section
        // 6.2).
        Some(name) if name.eq_ignore_ascii_case("DPoP") => Err(VerifyError::SenderConstrained),
        Some(_) => Err(VerifyError::NotAnAccessToken),
    }
}
