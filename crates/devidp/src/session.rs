use portcullis_metadata::{AccessTokenClaims, ResourceUri, Scopes, UnixTime};

use crate::{app::App, code::Approval, dpop::Thumbprint, tables::Keep};

/// What one approval goes on to allow for as long as it is refreshed: who allowed what to whom. Access tokens name it in `sid`.
#[derive(Clone)]
pub(crate) struct Session {
    /// Random, and new for each approval.
    pub(crate) id: Box<str>,
    pub(crate) client_id: Box<str>,
    pub(crate) subject: Box<str>,
    pub(crate) auth_time: UnixTime,
    pub(crate) scopes: Scopes,
    pub(crate) resource: ResourceUri,
    /// The key that its refresh tokens are bound to: those of public clients (RFC 9449 section 5).
    pub(crate) key: Option<Thumbprint>,
}

impl Session {
    pub(crate) fn of(approval: &Approval, key: Option<Thumbprint>) -> Self {
        Self {
            id: approval.session_id.clone(),
            client_id: approval.request.client_id.clone(),
            subject: approval.subject.clone(),
            auth_time: approval.auth_time,
            scopes: approval.request.scopes.clone(),
            resource: approval.request.resource.clone(),
            key,
        }
    }
}

/// Ends all that a session allowed: its refresh token, and for introspection its access tokens.
pub(crate) fn withdraw(app: &App, session_id: &str) {
    // First the mark, then the refresh tokens: whoever makes one looks for the mark afterwards.
    if app.withdrawn.insert_new(session_id, ()).is_err() {
        tracing::warn!("too many sessions were withdrawn: access tokens of one more stay active until they expire");
    }
    app.families.forget(|family| *family.session.id == *session_id);
}

/// Whether a session was withdrawn.
pub(crate) fn is_withdrawn(app: &App, session_id: &str) -> bool {
    app.withdrawn.look_up(session_id, |()| ((), Keep::AsItWas)).is_some()
}

/// The session that an access token belongs to.
pub(crate) fn named_by(claims: &AccessTokenClaims) -> Option<&str> {
    claims.extra.get("sid")?.as_str()
}
