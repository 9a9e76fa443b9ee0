//! Tells clients that a user logged out.

use portcullis_authorization_server::{ErrorResponse, random_secret};
use portcullis_discovery::{FetchRequest, UrlPolicy};
use portcullis_metadata::Secret;
use serde_json::json;

use crate::{
    app::App,
    control::faults::{FaultKind, FaultPoint},
    logout::{LogoutError, Session},
    token::signing,
};

/// The type of logout tokens, and the event in them (section 2.4).
const LOGOUT_TYPE: &str = "logout+jwt";
const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// The lifetime of a logout token in seconds. The specification recommends two minutes.
const LIFETIME_SECONDS: u64 = 120;

/// Ends the sessions of a user with clients that have a logout URI, and sends each of these clients
/// a logout token for each session. Returns the number of sessions. Fails with the last error if a
/// client does not accept its token; the others are told nevertheless.
pub(crate) async fn log_out(app: &App, subject: &str) -> Result<usize, LogoutError> {
    let of_user = |session: &Session| (*session.subject == *subject).then(|| session.clone());
    let sessions = app.logout.sessions.collect(of_user);
    let mut result = Ok(());
    for session in &sessions {
        app.logout.sessions.remove(&session.id);
        app.sessions.withdraw(&session.id);
        if let Err(error) = notify(app, session).await {
            tracing::warn!(
                client.id = &*session.client_id,
                error = &error as &dyn std::error::Error,
                "a client did not accept a logout token"
            );
            result = Err(error);
        }
    }
    if sessions.is_empty() {
        return Err(LogoutError::NoSession);
    }
    result.map(|()| sessions.len())
}

/// Sends a logout token (section 2.5).
async fn notify(app: &App, session: &Session) -> Result<(), LogoutError> {
    let (Some(uri), Some(fetch)) = (app.logout.uri(&session.client_id), &app.logout.fetch) else {
        return Err(LogoutError::NoSession);
    };
    let token = logout_token(app, session).map_err(|_| LogoutError::Token)?;
    let fields = token.iter().map(|token| ("logout_token", token.secret()));
    let request = FetchRequest::post_form(uri.clone(), fields, UrlPolicy::Operator);
    let response = fetch.fetch(request).await;
    let response = response.map_err(LogoutError::Unreachable)?;
    if !response.status.is_success() {
        let status = response.status.as_u16();
        return Err(LogoutError::Status { status });
    }
    tracing::info!(client.id = &*session.client_id, "sent a logout token");
    Ok(())
}

/// Returns the logout token of a session (section 2.4). `None` if a fault leaves it out.
fn logout_token(app: &App, session: &Session) -> Result<Option<Secret>, ErrorResponse> {
    let fault = app.faults.take_at(FaultPoint::LogoutToken);
    if fault.is_some_and(FaultKind::leaves_token_out) {
        return Ok(None);
    }
    let now = app.config.now().as_secs();
    let claims = [
        ("iss", json!(app.config.issuer.as_str())),
        ("aud", json!(session.client_id)),
        ("iat", json!(now)),
        ("exp", json!(now.saturating_add(LIFETIME_SECONDS))),
        ("jti", json!(random_secret(16)?.secret())),
        ("sub", json!(session.subject)),
        ("sid", json!(session.id)),
        ("events", json!({ LOGOUT_EVENT: {} })),
    ];
    let claims = claims
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let claims = claims.collect();
    signing::sign(&app.config, &app.keys, LOGOUT_TYPE, claims, fault).map(Some)
}
