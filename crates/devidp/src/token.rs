pub(crate) mod access_tokens;
mod claims;
mod client_credentials;
mod code_exchange;
mod device_grant;
pub(crate) mod extra_claims;
pub(crate) mod id_tokens;
pub(crate) mod identity_assertion;
pub(crate) mod introspection;
mod jwt_bearer;
pub(crate) mod revocation;
pub(crate) mod sessions;
pub(crate) mod signing;
pub(crate) mod user_access;
pub(crate) mod user_info;

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Grant, Params,
    authentication::AuthenticatedClient,
    authorization::Thumbprint,
    client::GrantType,
    token::{GrantedTokens, refresh},
};
use portcullis_metadata::{AccessToken, Scopes, Secret, authorization::TokenResponse};

use crate::{
    app::App,
    authentication::authenticate,
    authorize::scopes::response_scope,
    providers::{
        github::token_response::{self, TokenRequestKind},
        profile::TokenResponseFormat,
    },
    server::respond::{Reply, json_error, json_error_with_status, json_reply},
};

/// The tokens of a successful token request.
struct Issued {
    access_token: AccessToken,
    scopes: Scopes,
    refresh_token: Option<Secret>,
    id_token: Option<Secret>,
}

impl Issued {
    /// Issues an access token for a user who signed in, and an ID token if the scopes request one.
    /// `key` is the thumbprint of the DPoP key, if any.
    fn for_user(
        app: &App,
        granted: GrantedTokens,
        key: Option<&str>,
    ) -> Result<Self, ErrorResponse> {
        let access_token = app
            .access_tokens
            .issue(&granted.grant, &granted.scopes, key)?;
        let id_token = app.id_tokens.issue(&granted, &access_token, &app.faults)?;
        if id_token.is_some() {
            app.logout.record(&granted.grant);
        }
        Ok(Self {
            id_token,
            access_token,
            scopes: granted.scopes,
            refresh_token: granted.refresh_token,
        })
    }

    /// Issues an access token with all scopes of a grant for which no user signed in.
    fn without_sign_in(app: &App, grant: Grant, key: Option<&str>) -> Result<Self, ErrorResponse> {
        Ok(Self {
            access_token: app.access_tokens.issue(&grant, &grant.scopes, key)?,
            scopes: grant.scopes,
            refresh_token: None,
            id_token: None,
        })
    }
}

/// A token request with an authenticated client.
struct TokenRequest<'a> {
    caller: AuthenticatedClient,
    form: &'a Params,
    /// The DPoP key to which the tokens are bound, if any.
    key: Option<Thumbprint>,
}

/// Handles the token endpoint (RFC 6749 section 3.2).
pub(crate) async fn handle(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    let mut reply = handle_token_request(app, headers, form)
        .await
        .unwrap_or_else(|error| {
            tracing::info!(
                token.error = error.code.as_str(),
                token.description = error.description,
                "rejected a token request"
            );
            // RFC 6749 section 5.2 has no 403.
            let is_denied = error.code == ErrorCode::AccessDenied;
            if is_denied {
                json_error_with_status(StatusCode::BAD_REQUEST, error)
            } else {
                json_error(error)
            }
        });
    if app.config.profile.is_github() {
        let is_refresh = form.get("grant_type") == Ok(Some(GrantType::RefreshToken.as_str()));
        let has_refresh = app.config.profile.token_response == TokenResponseFormat::GitHubApp;
        let lifetime = app.config.settings.refresh_token_lifetime.as_secs();
        let kind = TokenRequestKind {
            is_refresh,
            refresh_lifetime: has_refresh.then_some(lifetime),
        };
        reply = token_response::convert(headers, kind, reply).await;
    }
    reply.headers_mut().extend(app.dpop.nonce_header());
    reply
}

async fn handle_token_request(
    app: &App,
    headers: &HeaderMap,
    form: &Params,
) -> Result<Reply, ErrorResponse> {
    let of_github = || {
        app.config
            .profile
            .is_github()
            .then_some("authorization_code")
    };
    let name = form.get("grant_type")?.or_else(of_github);
    let name = name.ok_or(ErrorResponse::new(
        ErrorCode::InvalidRequest,
        "grant_type is missing",
    ))?;
    let unsupported = ErrorResponse::new(
        ErrorCode::UnsupportedGrantType,
        "the grant type is not supported",
    );
    let grant_type = GrantType::parse(name)
        .filter(|grant_type| app.config.supports(*grant_type))
        .ok_or(unsupported)?;
    let key = app.dpop.verify(headers)?;
    let caller = authenticate(app, headers, form).await?;
    if !caller.client.may_use(grant_type) {
        let description = "the client is not registered for this grant type";
        return Err(ErrorResponse::new(
            ErrorCode::UnauthorizedClient,
            description,
        ));
    }
    let request = TokenRequest { caller, form, key };
    let issued = match grant_type {
        GrantType::AuthorizationCode => code_exchange::exchange(app, &request).await?,
        GrantType::RefreshToken => {
            let TokenRequest { caller, form, key } = &request;
            let granted = refresh(&*app.config, app, caller, form, key.as_deref())
                .await
                .map_err(|error| error.response())?;
            Issued::for_user(app, granted, key.as_deref())?
        }
        GrantType::DeviceCode => device_grant::exchange(app, &request)?,
        GrantType::ClientCredentials => client_credentials::grant(app, &request)?,
        GrantType::JwtBearer => jwt_bearer::grant(app, &request).await?,
        GrantType::TokenExchange => return identity_assertion::exchange(app, &request),
        _ => return Err(unsupported),
    };
    let client_id = &*request.caller.id;
    tracing::info!(
        client.id = client_id,
        grant = grant_type.as_str(),
        "issued an access token"
    );
    let response = TokenResponse {
        expires_in: Some(app.config.settings.access_token_lifetime.as_secs()),
        scope: Some(response_scope(&app.config, &issued.scopes)),
        refresh_token: issued.refresh_token,
        id_token: issued.id_token,
        token_type: if request.key.is_some() {
            "DPoP"
        } else {
            "Bearer"
        }
        .to_owned(),
        ..TokenResponse::bearer(issued.access_token)
    };
    Ok(json_reply(StatusCode::OK, response.to_json()))
}
