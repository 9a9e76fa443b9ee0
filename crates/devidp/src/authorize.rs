//! The authorization endpoint (RFC 6749 section 3.1).

mod audience;
pub(crate) mod codes;
pub(crate) mod consent;
pub(crate) mod page;
mod policy;
pub(crate) mod scopes;
pub(crate) mod tickets;
pub(crate) mod user;

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    AuthorizationCode, ErrorCode, ErrorResponse, Grant, Params, Policy, RandomError, Store,
    StoreError,
    authorization::{
        self, Authorization, AuthorizationError, AuthorizationRequest, User, Users, error_location,
    },
};

use crate::{
    app::App,
    authorize::user::is_user_name,
    config::Config,
    server::respond::{self, Reply},
};

/// Handles the authorization endpoint. Responds with the consent page, a code or an error.
pub(crate) async fn authorize(
    app: &App,
    query: &str,
    headers: &HeaderMap,
) -> Result<Reply, StoreError> {
    let params = parse_params(&app.config, query);
    match authorization::authorize(&*app.config, &app.clients, app, &params, headers).await? {
        Authorization::Approved(request, user) => {
            let location = issue_code(app, &request, user).await?;
            Ok(respond::redirect(StatusCode::FOUND, &location))
        }
        Authorization::Ask(page) => Ok(page),
        Authorization::Rejected(
            AuthorizationError::Untrusted(reason) | AuthorizationError::Unavailable(reason),
        ) => {
            tracing::info!(authorize.description = reason, "displayed an error page");
            Ok(respond::error_page(StatusCode::BAD_REQUEST, reason)?)
        }
        Authorization::Rejected(AuthorizationError::Returned {
            redirect,
            state,
            error,
        }) => {
            tracing::info!(
                authorize.error = error.code.as_str(),
                authorize.description = error.description,
                "sent an error to the client"
            );
            let location = error_location(
                &redirect,
                state.as_deref(),
                error,
                app.config.response_issuer(),
            );
            Ok(respond::redirect(StatusCode::FOUND, &location))
        }
    }
}

/// Parses the parameters of a request. GitHub does not need `response_type`.
fn parse_params(config: &Config, query: &str) -> Params {
    let params = Params::parse(query.as_bytes());
    if config.profile.is_github() && params.get("response_type") == Ok(None) {
        Params::parse(format!("{query}&response_type=code").as_bytes())
    } else {
        params
    }
}

impl Users for App {
    type Reply = Reply;
    type Error = RandomError;

    /// Approves a request with a loopback redirect URI if the settings say so, or shows the consent
    /// page.
    async fn identify(
        &self,
        request: AuthorizationRequest,
        headers: &HeaderMap,
    ) -> Result<Authorization<Reply>, RandomError> {
        if self.config.settings.auto_consent && request.redirect.is_loopback() {
            let user = User {
                subject: suggested_user(&self.config, &request).into(),
                auth_time: self.config.now(),
            };
            return Ok(Authorization::Approved(Box::new(request), user));
        }
        consent::show_request(self, request, headers).map(Authorization::Ask)
    }
}

/// Returns the user name that the request suggests, if it is valid, or that of the settings.
fn suggested_user<'a>(config: &'a Config, request: &'a AuthorizationRequest) -> &'a str {
    request
        .login_hint
        .as_deref()
        .filter(|hint| is_user_name(hint))
        .unwrap_or(&config.settings.user)
}

/// Issues a code for an approved request and returns the URL of the redirect (RFC 6749 section
/// 4.1.2, RFC 9207). A removed user is denied access.
async fn issue_code(
    app: &App,
    request: &AuthorizationRequest,
    user: User,
) -> Result<String, StoreError> {
    if app.removed_users.contains(&user.subject) {
        let error = ErrorResponse::new(ErrorCode::AccessDenied, "the user was removed");
        let issuer = app.config.response_issuer();
        let state = request.state.as_deref();
        return Ok(error_location(&request.redirect, state, error, issuer));
    }
    let grant = Grant::new(request, user)?;
    app.clients.record_approval(&request.client_id);
    tracing::info!(client.id = &*request.client_id, "issued a code");
    let is_refreshable = app.codes.record_approval(request, &grant.subject);
    let session_id = grant.id.clone();
    if let Some(nonce) = &request.nonce {
        app.id_tokens.keep_nonce(&session_id, nonce.clone());
    }
    let session_state = app
        .config
        .profile
        .sends_session_state
        .then_some(("session_state", &*session_id));
    let code = AuthorizationCode::new(request, grant, is_refreshable);
    let code = app.issue_code(code).await?;
    Ok(request.code_location(code.secret(), session_state, app.config.response_issuer()))
}
