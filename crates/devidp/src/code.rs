use std::sync::Arc;

use portcullis_metadata::UnixTime;

use crate::{
    app::App,
    authorize::AuthorizationRequest,
    handle::{Handle, random_text},
    session,
    tables::Keep,
};

/// What a person allowed: all that a token is made from.
pub(crate) struct Approval {
    pub(crate) request: AuthorizationRequest,
    pub(crate) subject: Box<str>,
    pub(crate) auth_time: UnixTime,
    /// The `sid` of the token.
    pub(crate) session_id: Box<str>,
}

/// A code's row in the table of codes.
pub(crate) struct IssuedCode {
    handle: Handle,
    approval: Arc<Approval>,
    spent: bool,
}

/// Why a code buys nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeError {
    /// It was never issued, or its time is over.
    Unknown,
    /// It was presented before. What it bought is withdrawn (RFC 6749 section 4.1.2).
    Spent,
}

/// Issues a code for a request that was allowed, and returns the address to redirect the browser to
/// (RFC 6749 section 4.1.2, RFC 9207).
pub(crate) fn issue(app: &App, request: AuthorizationRequest, subject: Box<str>) -> Result<String, getrandom::Error> {
    let handle = Handle::generate()?;
    let code = [("code", handle.text())];
    let state = request.state.as_deref().map(|state| ("state", state));
    let location = request.redirect.with(code.into_iter().chain(state).chain([("iss", app.issuer.as_str())]));
    tracing::info!(client.id = &*request.client_id, "issued a code");

    app.clients.look_up(&request.client_id, |row| (row.used = true, Keep::Renewed));
    let approval = Arc::new(Approval {
        request,
        subject,
        auth_time: app.settings.clock.unix(),
        session_id: random_text(16)?.as_str().into(),
    });
    let id = handle.id().to_owned();
    // A full table lets its oldest code go, so that there is always room.
    let _ = app.codes.insert(&id, IssuedCode { handle, approval, spent: false }, |_| true);
    Ok(location)
}

/// Spends a code. Whatever is wrong with the rest of the exchange, a code that was presented is worth nothing afterwards
/// (RFC 6749 section 10.5); it is remembered for the rest of its minute, so that a second use is noticed.
pub(crate) fn redeem(app: &App, code: &str) -> Result<Arc<Approval>, CodeError> {
    let presented = Handle::parse(code).ok_or(CodeError::Unknown)?;
    let answer = app.codes.look_up(presented.id(), |issued| {
        let answer = if !presented.proves(&issued.handle) {
            Err(None)
        } else if issued.spent {
            Err(Some(Arc::clone(&issued.approval)))
        } else {
            issued.spent = true;
            Ok(Arc::clone(&issued.approval))
        };
        (answer, Keep::AsItWas)
    });
    answer.unwrap_or(Err(None)).map_err(|spent| match spent {
        None => CodeError::Unknown,
        Some(approval) => {
            session::withdraw(app, &approval.session_id);
            CodeError::Spent
        }
    })
}
