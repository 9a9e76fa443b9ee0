//! Authorization codes.

use std::sync::Arc;

use portcullis_metadata::UnixTime;

use crate::{
    app::App,
    authorize::{AuthorizationRequest, RefreshRequest, issuer_param},
    handle::{Handle, random_text},
    providers::profile::RefreshTokenRule,
    tables::RowAction,
    token::session,
};

/// A user's approval of an authorization request.
pub(crate) struct Approval {
    pub(crate) request: AuthorizationRequest,
    pub(crate) subject: Box<str>,
    pub(crate) auth_time: UnixTime,
    /// The `sid` of the tokens.
    pub(crate) session_id: Box<str>,
    /// Whether the client gets a refresh token.
    pub(crate) is_refreshable: bool,
}

/// An entry in the table of codes.
pub(crate) struct IssuedCode {
    handle: Handle,
    approval: Arc<Approval>,
    is_used: bool,
}

impl IssuedCode {
    pub(crate) fn client_id(&self) -> &str {
        &self.approval.request.client_id
    }
}

/// Why a code is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeError {
    /// The code was never issued or has expired.
    Unknown,
    /// The code was used before. Its tokens are revoked (RFC 6749 section 4.1.2).
    Used,
}

/// Issues a code for an approved request and returns the URL of the redirect (RFC 6749 section 4.1.2, RFC 9207).
pub(crate) fn issue(app: &App, request: AuthorizationRequest, subject: Box<str>) -> Result<String, getrandom::Error> {
    let handle = Handle::generate()?;
    let session_id: Box<str> = random_text(16)?.as_str().into();
    let code = [("code", handle.as_str())];
    let state = request.state.as_deref().map(|state| ("state", state));
    let session_state = app.profile.sends_session_state.then_some(("session_state", &*session_id));
    let params = code.into_iter().chain(state).chain(session_state).chain(issuer_param(app));
    let location = request.redirect.with_params(params);
    tracing::info!(client.id = &*request.client_id, "issued a code");

    app.clients.update(&request.client_id, |row| (row.used = true, RowAction::Renew));
    // A full table counts as an earlier approval.
    let is_first = matches!(app.profile.refresh_tokens, RefreshTokenRule::AccessType)
        && app.approved.insert_new(&format!("{}\n{subject}", request.client_id), ()).unwrap_or(false);
    let is_refreshable = match request.refresh {
        RefreshRequest::No => false,
        RefreshRequest::Yes => true,
        RefreshRequest::FirstApproval => is_first,
    };
    let auth_time = app.settings.clock.now();
    let approval = Arc::new(Approval { request, subject, auth_time, session_id, is_refreshable });
    let id = handle.id().to_owned();
    // Every entry is evictable, so this never fails.
    let _ = app.codes.insert(&id, IssuedCode { handle, approval, is_used: false }, |_| true);
    Ok(location)
}

/// Redeems a code. A code can be redeemed once, even if the token request fails afterwards (RFC 6749 section 10.5). It is
/// remembered until it expires, so a second use is detected and ends the session.
pub(crate) fn redeem(app: &App, code: &str) -> Result<Arc<Approval>, CodeError> {
    let presented = Handle::parse(code).ok_or(CodeError::Unknown)?;
    let result = app.codes.update(presented.id(), |issued| {
        let result = if !presented.matches(&issued.handle) {
            Err(None)
        } else if issued.is_used {
            Err(Some(Arc::clone(&issued.approval)))
        } else {
            issued.is_used = true;
            Ok(Arc::clone(&issued.approval))
        };
        (result, RowAction::Keep)
    });
    result.unwrap_or(Err(None)).map_err(|approval| match approval {
        None => CodeError::Unknown,
        Some(approval) => {
            session::withdraw(app, &approval.session_id);
            CodeError::Used
        }
    })
}
