//! Sessions: the tokens that follow from one approval.

use portcullis_metadata::{AccessTokenClaims, Scopes, UnixTime};

use crate::{app::App, authentication::dpop::Thumbprint, authorize::code::Approval, tables::RowAction};

/// The session of an approval, which refresh tokens continue. Its identifier is the `sid` of its access tokens.
#[derive(Clone)]
pub(crate) struct Session {
    /// A random identifier.
    pub(crate) id: Box<str>,
    pub(crate) client_id: Box<str>,
    pub(crate) subject: Box<str>,
    pub(crate) auth_time: UnixTime,
    pub(crate) scopes: Scopes,
    pub(crate) audience: Option<Box<str>>,
    /// The DPoP key to which a public client's refresh tokens are bound (RFC 9449 section 5).
    pub(crate) key: Option<Thumbprint>,
}

impl Session {
    pub(crate) fn new(approval: &Approval, key: Option<Thumbprint>) -> Self {
        Self {
            id: approval.session_id.clone(),
            client_id: approval.request.client_id.clone(),
            subject: approval.subject.clone(),
            auth_time: approval.auth_time,
            scopes: approval.request.scopes.clone(),
            audience: approval.request.audience.clone(),
            key,
        }
    }
}

/// Ends a session: removes its refresh token and makes its access tokens inactive.
pub(crate) fn withdraw(app: &App, session_id: &str) {
    // The session is listed before its refresh tokens are removed: `refresh_token::issue` checks the list after
    // inserting.
    if app.withdrawn.insert_new(session_id, ()).is_err() {
        tracing::warn!(
            "too many sessions are withdrawn: the access tokens of this session stay active until they expire"
        );
    }
    app.token_families.remove_if(|family| *family.session.id == *session_id);
}

/// Returns whether a session is withdrawn.
pub(crate) fn is_withdrawn(app: &App, session_id: &str) -> bool {
    app.withdrawn.update(session_id, |()| ((), RowAction::Keep)).is_some()
}

/// Returns the identifier of an access token's session.
pub(crate) fn session_id(claims: &AccessTokenClaims) -> Option<&str> {
    claims.extra.get("sid")?.as_str()
}
