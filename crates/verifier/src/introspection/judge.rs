use portcullis_metadata::{ClaimsError, IntrospectionResponse, ResourceUri, Scopes, UnixTime};
use serde_json::Value;

use crate::{
    IssuerSettings, Principal, VerifyError,
    cache::Now,
    claims::{self, Statement},
    principal::PrincipalFields,
    said::Said,
};

/// Judges what `settings.issuer` says about a token (RFC 7662 section 2.2), by the same rules as the claims of a signed
/// one, but for two members that may be left out: `iss`, and `exp`, in whose absence the token ends at `unsaid_end`.
pub(crate) fn judge(
    answer: &IntrospectionResponse,
    settings: &IssuerSettings,
    resource: &ResourceUri,
    now: Now,
    unsaid_end: UnixTime,
) -> Result<Principal, VerifyError> {
    if !answer.active {
        return Err(VerifyError::Inactive);
    }
    if answer.iss.as_deref().is_some_and(|iss| iss != settings.issuer.as_str()) {
        return Err(VerifyError::IssuerMismatch);
    }
    judge_token_type(answer.token_type.as_deref())?;
    let mut said = Statement::of_answer(answer, typ(answer)?, settings, resource);
    said.iss.get_or_insert(settings.issuer.as_str());
    said.exp.get_or_insert(unsaid_end);
    let expires = claims::judge(&said, settings, now.unix)?;
    Ok(Principal::new(PrincipalFields {
        issuer: settings.issuer.clone(),
        subject: answer.sub.as_deref().map(Into::into),
        client: answer.client_id.as_deref().or(answer.azp.as_deref()).map(Into::into),
        scopes: answer.scope.clone().unwrap_or_else(Scopes::empty),
        expires,
        valid_until: answer.exp.map(|exp| exp.saturating_add(settings.leeway)),
        introspected_at: Some(now.monotonic),
        said: Said::in_object(answer.to_json()),
        subjectless_client: settings.subjectless_client,
    }))
}

/// Some servers call ID tokens and refresh tokens active, and tell them apart here alone.
fn judge_token_type(token_type: Option<&str>) -> Result<(), VerifyError> {
    match token_type {
        None => Ok(()),
        Some(named) if named.eq_ignore_ascii_case("Bearer") => Ok(()),
        // It is bound to its sender even where `cnf` is left out (RFC 9449 section 6.2).
        Some(named) if named.eq_ignore_ascii_case("DPoP") => Err(VerifyError::SenderConstrained),
        Some(_) => Err(VerifyError::NotAnAccessToken),
    }
}

fn typ(answer: &IntrospectionResponse) -> Result<Option<&str>, ClaimsError> {
    match answer.extra.get("typ") {
        None => Ok(None),
        Some(Value::String(typ)) => Ok(Some(typ)),
        Some(_) => Err(ClaimsError::WrongType { claim: "typ" }),
    }
}
