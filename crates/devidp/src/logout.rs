//! Back-channel logout (OpenID Connect Back-Channel Logout 1.0).

use std::sync::Arc;

use portcullis_authorization_server::{ErrorResponse, Grant, random_secret};
use portcullis_discovery::{Fetch, FetchRequest, FetchSettings, HttpFetch, UrlPolicy};
use portcullis_metadata::Secret;
use serde_json::json;
use url::Url;

use crate::{
    app::App,
    config::Config,
    control::faults::{FaultKind, FaultPoint},
    error::DevIdpError,
    tables::{EVICTING_CAPACITY, Table},
    token::signing,
};

/// The sessions of users with clients that have a logout URI.
pub(crate) struct Logout {
    sessions: Table<Session>,
    /// The clients with a logout URI.
    clients: Vec<LogoutClient>,
    /// `None` if no client has a logout URI.
    fetch: Option<Arc<dyn Fetch>>,
}

struct LogoutClient {
    id: Box<str>,
    uri: Url,
}

#[derive(Clone)]
struct Session {
    id: Box<str>,
    client_id: Box<str>,
    subject: Box<str>,
}

/// Why a client was not told that a user logged out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogoutError {
    /// The user has no session with a client that has a logout URI.
    #[error("the user has no session with a client that has a backchannel_logout_uri")]
    NoSession,
    /// The client answered with an error.
    #[error("the client answered the logout token with status {status}")]
    Status {
        /// The status of the response.
        status: u16,
    },
    /// The client cannot be reached.
    #[error("the client cannot be reached")]
    Unreachable(#[source] portcullis_discovery::FetchError),
    /// The logout token cannot be created.
    #[error("the logout token cannot be created")]
    Token,
}

/// The type of logout tokens, and the event in them (section 2.4).
const LOGOUT_TYPE: &str = "logout+jwt";
const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// The lifetime of a logout token in seconds. The specification recommends two minutes.
const LIFETIME_SECONDS: u64 = 120;

impl Logout {
    /// Fails when the HTTP client cannot be created.
    pub(crate) fn new(config: &Config) -> Result<Self, DevIdpError> {
        let settings = &config.settings;
        let client = |client: &crate::ClientSettings| {
            let uri = Url::parse(client.backchannel_logout_uri.as_deref()?).ok()?;
            let id = client.id.as_str().into();
            Some(LogoutClient { id, uri })
        };
        let clients: Vec<_> = settings.clients.iter().filter_map(client).collect();
        let fetch = || HttpFetch::new(FetchSettings::default()).map_err(DevIdpError::Fetch);
        let fetch = (!clients.is_empty()).then(fetch).transpose()?;
        Ok(Self {
            sessions: config.table(EVICTING_CAPACITY, settings.refresh_token_lifetime),
            clients,
            fetch: fetch.map(|fetch| Arc::new(fetch) as Arc<dyn Fetch>),
        })
    }

    /// Records the session of a grant if its client has a logout URI.
    pub(crate) fn record(&self, grant: &Grant) {
        if self.uri(&grant.client_id).is_some() {
            let session = Session {
                id: grant.id.clone(),
                client_id: grant.client_id.clone(),
                subject: grant.subject.clone(),
            };
            self.sessions.insert(&grant.id, session);
        }
    }

    fn uri(&self, client_id: &str) -> Option<&Url> {
        let mut clients = self.clients.iter();
        clients
            .find(|client| *client.id == *client_id)
            .map(|client| &client.uri)
    }
}

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
