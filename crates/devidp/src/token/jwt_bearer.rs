//! The JWT bearer grant (RFC 7523).

use portcullis_jose::CompactJws;
use portcullis_metadata::Scopes;
use serde_json::Value;

use crate::{
    app::App,
    authentication::assertion::MAX_ASSERTION,
    authorize::{audience::parse_audience, scopes::grant_scopes},
    handle::random_text,
    server::oauth_error::{ErrorCode, ErrorResponse},
    token::{Issued, TokenRequest, session::Session},
};

/// The `typ` of an identity assertion
/// (draft-ietf-oauth-identity-assertion-authz-grant section 3.1).
pub(super) const ID_JAG: &str = "oauth-id-jag+jwt";

/// Issues an access token for the subject of a trusted issuer's assertion (RFC 7523 section 2.1). The assertion is an
/// identity assertion for the client, which can be used once, or the token of a workload, which can be used again.
pub(super) fn grant(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "assertion is missing");
    let assertion = form.get("assertion")?.ok_or(missing)?;
    let compact =
        CompactJws::parse(assertion, MAX_ASSERTION).map_err(|_| invalid("the assertion is not a signed JWT"))?;
    let keys = app.assertions.trusted_keys(&compact).ok_or(invalid("the assertion's issuer is not trusted here"))?;
    let claims = app.assertions.verify(keys, &compact, app.config.issuer.as_str()).map_err(invalid)?;
    let subject = claims.sub.as_deref().filter(|subject| !subject.is_empty());
    let subject = subject.ok_or(invalid("the assertion has no sub"))?;

    let is_identity = compact.header().typ() == Some(ID_JAG);
    let mut scopes = grant_scopes(&app.config, &caller.client, form)?;
    let mut resource = None;
    match compact.header().typ() {
        _ if is_identity => {
            if claims.client_id.as_deref() != Some(&*caller.id) {
                return Err(invalid("the assertion was issued for another client"));
            }
            resource = claims.extra.get("resource").and_then(Value::as_str);
            if claims.scope != Scopes::default() {
                scopes = scopes.intersection(&claims.scope);
            }
        }
        None | Some("JWT" | "jwt") => {}
        Some(_) => return Err(invalid("the assertion is a JWT of the wrong type")),
    }
    let requested = parse_audience(&app.config, form);
    let audience = match resource {
        None => requested?,
        Some(granted) => match requested {
            Ok(requested) if requested.as_deref() == Some(granted) => requested,
            _ => {
                let description = "resource is not that of the assertion";
                return Err(ErrorResponse::new(ErrorCode::InvalidTarget, description));
            }
        },
    };
    if is_identity {
        app.assertions.use_once(&claims).map_err(invalid)?;
    }
    let session = Session {
        id: random_text(16)?.as_str().into(),
        client_id: caller.id.clone(),
        subject: subject.into(),
        auth_time: app.config.now(),
        scopes,
        audience,
        key: None,
    };
    Ok(Issued {
        access_token: app.access_tokens.issue(&session, &session.scopes, key.as_deref())?,
        scopes: session.scopes,
        refresh_token: None,
    })
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}
