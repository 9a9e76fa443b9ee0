//! The JWT bearer grant (RFC 7523).

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Grant, Policy,
    authentication::{
        AssertionError, MAX_ASSERTION, is_plain_jwt, use_assertion, verify_assertion,
    },
    random_secret,
};
use portcullis_jose::CompactJws;
use portcullis_metadata::{AccessTokenClaims, Scopes};
use serde_json::Value;

use crate::{
    app::App,
    token::{Issued, TokenRequest},
};

/// The `typ` of an identity assertion (draft-ietf-oauth-identity-assertion-authz-grant section
/// 3.1).
pub(super) const ID_JAG: &str = "oauth-id-jag+jwt";

/// Issues an access token for the subject of a trusted issuer's assertion (RFC 7523 section 2.1).
/// The assertion is an identity assertion for the client, which can be used once, or the token of a
/// workload, which can be used again.
pub(super) async fn grant(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "assertion is missing");
    let assertion = form.get("assertion")?.ok_or(missing)?;
    let compact = CompactJws::parse(assertion, MAX_ASSERTION)
        .map_err(|_| invalid("the assertion is not a signed JWT"))?;
    let keys = app
        .assertions
        .trusted_keys(&compact)
        .ok_or(invalid("the assertion's issuer is not trusted here"))?;
    let failed = |error: AssertionError| invalid(error.description());
    let issuer = app.config.issuer.as_str();
    let claims = verify_assertion(keys, &compact, issuer, app.config.now()).map_err(failed)?;
    let subject = claims.sub.as_deref().filter(|subject| !subject.is_empty());
    let subject = subject.ok_or(invalid("the assertion has no sub"))?;

    let mut scopes = app.config.scopes(&caller.client, form)?;
    let audience = app.config.audience(form)?;
    if compact.header().typ() == Some(ID_JAG) {
        if claims.client_id.as_deref() != Some(&*caller.id) {
            return Err(invalid("the assertion was issued for another client"));
        }
        scopes = granted_scopes(scopes, &claims)?;
        check_granted_resource(audience.as_deref(), &claims)?;
        use_assertion(app, &claims).await.map_err(failed)?;
    } else if !is_plain_jwt(&compact) {
        return Err(invalid("the assertion is a JWT of the wrong type"));
    }
    let grant = Grant {
        id: random_secret(16)?.secret().into(),
        client_id: caller.id.clone(),
        subject: subject.into(),
        auth_time: app.config.now(),
        scopes,
        audience,
        key: None,
    };
    Issued::without_sign_in(app, grant, key.as_deref())
}

/// Returns those of the scopes that an identity assertion grants: all, if it has no `scope`.
fn granted_scopes(scopes: Scopes, claims: &AccessTokenClaims) -> Result<Scopes, ErrorResponse> {
    if claims.scope.is_empty() {
        return Ok(scopes);
    }
    let granted = scopes.intersection(&claims.scope);
    if granted.is_empty() {
        let description = "the assertion grants none of the requested scopes";
        return Err(ErrorResponse::new(ErrorCode::InvalidScope, description));
    }
    Ok(granted)
}

/// Checks the audience against the `resource` of an identity assertion, if it has one. Several
/// resources are not supported.
fn check_granted_resource(
    audience: Option<&str>,
    claims: &AccessTokenClaims,
) -> Result<(), ErrorResponse> {
    match claims.extra.get("resource") {
        None => Ok(()),
        Some(Value::String(granted)) if audience == Some(granted) => Ok(()),
        Some(_) => Err(ErrorResponse::new(
            ErrorCode::InvalidTarget,
            "resource is not that of the assertion",
        )),
    }
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}
