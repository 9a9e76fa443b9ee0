use std::time::Duration;

use http::StatusCode;
use portcullis_jose::Compact;
use serde_json::json;

use crate::{
    app::App,
    assertion::{self, MAX_ASSERTION},
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
    respond::{Reply, json_reply},
    token::{TokenRequest, jwt_bearer::ID_JAG},
};

const ID_JAG_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
const LIFETIME: Duration = Duration::from_secs(300);

/// Makes an identity assertion for another authorization server out of an ID token that a trusted issuer gave to the client
/// (RFC 8693 section 2, draft-ietf-oauth-identity-assertion-authz-grant section 4.3).
pub(super) fn exchange(app: &App, asked: &TokenRequest<'_>) -> Result<Reply, OAuthRefusal> {
    let TokenRequest { caller, form, .. } = asked;
    let refuse = |description| OAuthRefusal::new(ErrorName::InvalidRequest, description);
    let needed = |name, description| form.one(name)?.ok_or(refuse(description));
    if needed("requested_token_type", "requested_token_type is missing")? != ID_JAG_TYPE {
        return Err(refuse("requested_token_type is always that of an ID-JAG"));
    }
    if needed("subject_token_type", "subject_token_type is missing")? != ID_TOKEN_TYPE {
        return Err(refuse("subject_token_type is always that of an ID token"));
    }
    let audience = needed("audience", "audience is missing: it is the issuer of the other authorization server")?;
    let resource = needed("resource", "resource is missing")?;
    let subject_token = needed("subject_token", "subject_token is missing")?;

    let invalid = |description| OAuthRefusal::new(ErrorName::InvalidGrant, description);
    let compact = Compact::parse(subject_token, MAX_ASSERTION).map_err(|_| invalid("the ID token is no signed JWT"))?;
    let keys = app.trusted_keys(&compact).ok_or(invalid("the ID token's issuer is not trusted here"))?;
    // An ID token is for the client that shows it.
    let claims = assertion::verified(app, keys, &compact, &caller.id).map_err(invalid)?;
    let now = app.settings.clock.unix();
    let assertion = json!({
        "iss": app.issuer.as_str(),
        "sub": claims.sub.ok_or(invalid("the ID token has no sub"))?,
        "aud": audience,
        "client_id": &*caller.id,
        "resource": resource,
        "scope": form.one("scope")?.unwrap_or_default(),
        "jti": &*random_text(16)?,
        "iat": now.as_secs(),
        "exp": now.plus(LIFETIME).as_secs(),
    });
    let ring = app.keys.current();
    let signed = ring.of(app.settings.signing_algorithm).sign(ID_JAG, assertion.to_string().as_bytes());
    let signed = signed.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "cannot sign an identity assertion");
        OAuthRefusal::new(ErrorName::ServerError, "the assertion could not be signed")
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
