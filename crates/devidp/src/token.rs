mod access_token;
mod client_credentials;
mod code_exchange;
mod identity_assertion;
mod jwt_bearer;
mod refreshed;

use http::{HeaderMap, HeaderValue, StatusCode};
use portcullis_metadata::{AccessToken, Scopes, Secret, TokenResponse};

use crate::{
    GrantType,
    app::App,
    client_authentication::{Caller, authenticate},
    dpop::{self, Thumbprint},
    form::Params,
    oauth_error::{ErrorName, OAuthRefusal},
    respond::{Reply, json_refusal, json_reply},
};

/// What a grant brought: the token, and what the client is told about it.
struct Issued {
    access_token: AccessToken,
    scopes: Scopes,
    refresh_token: Option<Secret>,
}

/// A request whose client is known to be the one that it names.
struct TokenRequest<'a> {
    caller: Caller,
    form: &'a Params,
    /// The key that the client proved to hold, to which its token is bound.
    key: Option<Thumbprint>,
}

/// Answers the token endpoint (RFC 6749 section 3.2).
pub(crate) async fn exchange(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    let mut reply = token_for(app, headers, form).await.unwrap_or_else(|refusal| {
        tracing::info!(
            token.error = refusal.error.as_str(),
            token.refused = refusal.description,
            "refused a token request"
        );
        json_refusal(refusal)
    });
    if app.settings.dpop_nonces {
        let nonce = app.nonces.current().ok().and_then(|nonce| HeaderValue::from_str(nonce.secret()).ok());
        reply.headers_mut().extend(nonce.map(|nonce| (dpop::NONCE, nonce)));
    }
    reply
}

async fn token_for(app: &App, headers: &HeaderMap, form: &Params) -> Result<Reply, OAuthRefusal> {
    let name = form.one("grant_type")?;
    let name = name.ok_or(OAuthRefusal::new(ErrorName::InvalidRequest, "grant_type is missing"))?;
    let unsupported = OAuthRefusal::new(ErrorName::UnsupportedGrantType, "this grant type is not served here");
    let grant_type = GrantType::parse(name).filter(|grant_type| app.serves(*grant_type)).ok_or(unsupported)?;
    let key = dpop::proven(app, headers)?;
    let caller = authenticate(app, headers, form).await?;
    if !caller.client.may_use(grant_type) {
        let description = "the client is not registered for this grant type";
        return Err(OAuthRefusal::new(ErrorName::UnauthorizedClient, description));
    }
    let request = TokenRequest { caller, form, key };
    let issued = match grant_type {
        GrantType::AuthorizationCode => code_exchange::exchange(app, &request)?,
        GrantType::RefreshToken => refreshed::refresh(app, &request)?,
        GrantType::ClientCredentials => client_credentials::grant(app, &request)?,
        GrantType::JwtBearer => jwt_bearer::grant(app, &request)?,
        GrantType::TokenExchange => return identity_assertion::exchange(app, &request),
    };
    let client_id = &*request.caller.id;
    tracing::info!(client.id = client_id, grant = grant_type.as_str(), "issued an access token");
    let response = TokenResponse {
        expires_in: Some(app.settings.access_token_lifetime.as_secs()),
        scope: Some(issued.scopes.to_string()),
        refresh_token: issued.refresh_token,
        token_type: if request.key.is_some() { "DPoP" } else { "Bearer" }.to_owned(),
        ..TokenResponse::bearer(issued.access_token)
    };
    Ok(json_reply(StatusCode::OK, response.to_json()))
}

const fn wrong_target() -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidTarget, "resource is not the one of the authorization request")
}
