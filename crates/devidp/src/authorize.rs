//! The authorization endpoint (RFC 6749 section 3.1).

pub(crate) mod audience;
pub(crate) mod codes;
pub(crate) mod consent;
pub(crate) mod page;
pub(crate) mod request;
pub(crate) mod scopes;
pub(crate) mod tickets;
pub(crate) mod user;

use http::{HeaderMap, StatusCode};
use portcullis_authorization_server::{
    ErrorResponse, Params, RandomError, client::RedirectUri, random_secret,
};

use crate::{
    app::App,
    authorize::{
        codes::Approval,
        request::{AuthorizationRequest, AuthorizeError},
    },
    config::Config,
    server::respond::{self, Reply},
};

/// Handles the authorization endpoint. Responds with the consent page, a code or an error.
pub(crate) async fn authorize(
    app: &App,
    query: &str,
    headers: &HeaderMap,
) -> Result<Reply, RandomError> {
    match AuthorizationRequest::parse(
        &app.config,
        &app.clients,
        &Params::parse(query.as_bytes()),
        headers,
    )
    .await
    {
        Ok(request) if app.config.settings.auto_consent && request.redirect.is_loopback() => {
            let user = request
                .login_hint
                .clone()
                .unwrap_or_else(|| app.config.settings.user.as_str().into());
            let location = issue_code(app, request, user)?;
            Ok(respond::redirect(StatusCode::FOUND, &location))
        }
        Ok(request) => consent::show_request(app, request, headers),
        Err(AuthorizeError::Untrusted(reason)) => {
            tracing::info!(authorize.description = reason, "displayed an error page");
            respond::error_page(StatusCode::BAD_REQUEST, reason)
        }
        Err(AuthorizeError::Returned {
            redirect,
            state,
            error,
        }) => {
            tracing::info!(
                authorize.error = error.code.as_str(),
                authorize.description = error.description,
                "sent an error to the client"
            );
            let location = error_location(&app.config, &redirect, state.as_deref(), error);
            Ok(respond::redirect(StatusCode::FOUND, &location))
        }
    }
}

/// Issues a code for an approved request and returns the URL of the redirect (RFC 6749 section
/// 4.1.2, RFC 9207).
fn issue_code(
    app: &App,
    request: AuthorizationRequest,
    subject: Box<str>,
) -> Result<String, RandomError> {
    let session_id: Box<str> = random_secret(16)?.secret().into();
    let redirect = request.redirect.clone();
    let state = request.state.clone();
    app.clients.record_approval(&request.client_id);
    tracing::info!(client.id = &*request.client_id, "issued a code");
    let auth_time = app.config.now();
    let is_refreshable = app.codes.record_approval(&request, &subject);
    let approval = Approval {
        request,
        subject,
        auth_time,
        session_id: session_id.clone(),
        is_refreshable,
    };
    let code = app.codes.issue(approval)?;

    let state = state.as_deref().map(|state| ("state", state));
    let session_state = app
        .config
        .profile
        .sends_session_state
        .then_some(("session_state", &*session_id));
    let params = [("code", code.as_str())]
        .into_iter()
        .chain(state)
        .chain(session_state);
    Ok(redirect.with_params(params.chain(issuer_param(&app.config))))
}

/// Returns the redirect URI with an error (RFC 6749 section 4.1.2.1) and the issuer (RFC 9207).
fn error_location(
    config: &Config,
    redirect: &RedirectUri,
    state: Option<&str>,
    error: ErrorResponse,
) -> String {
    let params = [
        ("error", error.code.as_str()),
        ("error_description", error.description),
    ];
    redirect.with_params(
        params
            .into_iter()
            .chain(state.map(|state| ("state", state)))
            .chain(issuer_param(config)),
    )
}

/// Returns the parameter `iss` of an authorization response (RFC 9207 section 2).
fn issuer_param(config: &Config) -> Option<(&'static str, &str)> {
    config
        .profile
        .sends_issuer
        .then(|| ("iss", config.issuer.as_str()))
}
