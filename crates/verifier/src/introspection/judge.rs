use portcullis_metadata::{AccessTokenClaims, ClaimsError, IntrospectionResponse, ResourceUri, UnixTime};
use serde_json::Value;

use crate::{IssuerSettings, Principal, VerifyError, claims};

/// Judges what `settings.issuer` says about a token (RFC 7662 section 2.2), by the same rules as the claims of a signed
/// one, but for two members that may be left out: `iss`, and `exp`, in whose absence the token ends at `unsaid_end`.
pub(crate) fn judge(
    answer: IntrospectionResponse,
    settings: &IssuerSettings,
    resource: &ResourceUri,
    now: UnixTime,
    unsaid_end: UnixTime,
) -> Result<Principal, VerifyError> {
    if !answer.active {
        return Err(VerifyError::Inactive);
    }
    if answer.iss.as_deref().is_some_and(|iss| iss != settings.issuer.as_str()) {
        return Err(VerifyError::IssuerMismatch);
    }
    judge_token_type(answer.token_type.as_deref())?;
    let mut said = claims_of(answer)?;
    said.iss = Some(settings.issuer.as_str().to_owned());
    said.exp.get_or_insert(unsaid_end);
    claims::judge(said, settings, resource, now)
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

fn claims_of(answer: IntrospectionResponse) -> Result<AccessTokenClaims, ClaimsError> {
    let mut extra = answer.extra;
    let typ = match extra.remove("typ") {
        None => None,
        Some(Value::String(typ)) => Some(typ),
        Some(_) => return Err(ClaimsError::WrongType { claim: "typ" }),
    };
    if let Some(username) = answer.username {
        extra.insert("username".to_owned(), Value::String(username));
    }
    Ok(AccessTokenClaims {
        iss: answer.iss,
        sub: answer.sub,
        aud: answer.aud,
        exp: answer.exp,
        nbf: answer.nbf,
        iat: answer.iat,
        scope: answer.scope,
        client_id: answer.client_id,
        azp: answer.azp,
        jti: answer.jti,
        typ,
        cnf: answer.cnf,
        extra,
    })
}
