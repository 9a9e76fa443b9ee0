//! The access token with which a client asks for a user.

use portcullis_authorization_server::{IssuedToken, Store as _, StoreError, TokenVerifier as _};

use crate::app::App;

/// A valid access token of a user.
pub(crate) struct UserAccess {
    /// The user name.
    pub(crate) subject: String,
    pub(crate) token: IssuedToken,
}

/// Returns the user of a valid access token. `None` if the token is invalid, revoked or of a
/// removed user, speaks for a client without a user, or is bound to a key, which this server does
/// not check at its user APIs.
pub(crate) async fn find(app: &App, token: &str) -> Result<Option<UserAccess>, StoreError> {
    let Some(token) = app.access_tokens.verify(token) else {
        return Ok(None);
    };
    let is_bound = token.claims.cnf.is_some();
    let subject = token.claims.sub.clone();
    let subject = subject.filter(|subject| **subject != *token.client_id && !is_bound);
    match subject {
        Some(subject) if app.is_active(&token).await? => Ok(Some(UserAccess { subject, token })),
        _ => Ok(None),
    }
}
