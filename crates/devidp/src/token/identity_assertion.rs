//! The token exchange grant for identity assertions (RFC 8693).

use std::time::Duration;

use http::StatusCode;
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params,
    authentication::{MAX_ASSERTION, is_plain_jwt, verify_assertion},
    random_secret,
};
use portcullis_jose::CompactJws;
use serde_json::json;

use crate::{
    app::App,
    server::respond::{Reply, json_reply},
    token::{TokenRequest, jwt_bearer::ID_JAG},
};

/// The token types of the exchange (draft-ietf-oauth-identity-assertion-authz-grant section 4.3).
const ID_JAG_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
/// The lifetime of an identity assertion.
pub(crate) const LIFETIME: Duration = Duration::from_secs(300);

/// The parameters of an exchange.
struct ExchangeRequest<'a> {
    /// The issuer of the other authorization server.
    audience: &'a str,
    resource: &'a str,
    scope: Option<&'a str>,
    /// The ID token.
    subject_token: &'a str,
}

/// Exchanges an ID token of a trusted issuer for an identity assertion for another authorization
/// server (RFC 8693 section 2, draft-ietf-oauth-identity-assertion-authz-grant section 4.3).
pub(super) fn exchange(app: &App, request: &TokenRequest<'_>) -> Result<Reply, ErrorResponse> {
    let TokenRequest { caller, form, .. } = request;
    let ExchangeRequest {
        audience,
        resource,
        scope,
        subject_token,
    } = ExchangeRequest::parse(form)?;
    let invalid = |description| ErrorResponse::new(ErrorCode::InvalidGrant, description);
    let compact = CompactJws::parse(subject_token, MAX_ASSERTION)
        .map_err(|_| invalid("the ID token is not a signed JWT"))?;
    if !is_plain_jwt(&compact) {
        return Err(invalid("the ID token is a JWT of the wrong type"));
    }
    let keys = app
        .assertions
        .trusted_keys(&compact)
        .ok_or(invalid("the ID token's issuer is not trusted here"))?;
    // The audience of an ID token is the client.
    let claims = verify_assertion(keys, &compact, &caller.id, app.config.now())
        .map_err(|error| invalid(error.description()))?;
    let subject = claims
        .sub
        .filter(|subject| !subject.is_empty())
        .ok_or(invalid("the ID token has no sub"))?;
    let now = app.config.now();
    let mut assertion = json!({
        "iss": app.config.issuer.as_str(),
        "sub": subject,
        "aud": audience,
        "client_id": &*caller.id,
        "resource": resource,
        "jti": random_secret(16)?.secret(),
        "iat": now.as_secs(),
        "exp": now.saturating_add(LIFETIME).as_secs(),
    });
    if let Some(scope) = scope {
        assertion["scope"] = json!(scope);
    }
    let ring = app.keys.current();
    let signed = ring
        .signing_key(app.config.settings.signing_algorithm)
        .sign(ID_JAG, assertion.to_string().as_bytes());
    let signed = signed.map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "cannot sign an identity assertion"
        );
        ErrorResponse::new(ErrorCode::ServerError, "the assertion could not be signed")
    })?;
    tracing::info!(client.id = &*caller.id, "issued an identity assertion");
    let body = json!({
        "access_token": signed,
        "issued_token_type": ID_JAG_TYPE,
        "token_type": "N_A",
        "expires_in": LIFETIME.as_secs(),
    });
    Ok(json_reply(StatusCode::OK, body.to_string().into_bytes()))
}

impl<'a> ExchangeRequest<'a> {
    /// Parses the parameters. All except `scope` are required.
    fn parse(form: &'a Params) -> Result<Self, ErrorResponse> {
        let reject = |description| ErrorResponse::new(ErrorCode::InvalidRequest, description);
        let required = |name, description| form.get(name)?.ok_or(reject(description));
        if required("requested_token_type", "requested_token_type is missing")? != ID_JAG_TYPE {
            return Err(reject("requested_token_type must be that of an ID-JAG"));
        }
        if required("subject_token_type", "subject_token_type is missing")? != ID_TOKEN_TYPE {
            return Err(reject("subject_token_type must be that of an ID token"));
        }
        Ok(Self {
            audience: required(
                "audience",
                "audience is missing: it is the issuer of the other authorization server",
            )?,
            resource: required("resource", "resource is missing")?,
            scope: form.get("scope")?,
            subject_token: required("subject_token", "subject_token is missing")?,
        })
    }
}
