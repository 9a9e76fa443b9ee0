//! The device code grant (RFC 8628 section 3.4).

use std::time::Duration;

use crate::{
    app::App,
    device::Answer,
    handle::{Handle, random_text},
    server::oauth_error::{ErrorCode, ErrorResponse},
    tables::RowAction,
    token::{Issued, TokenRequest, access_token, refresh_token, session::Session},
};

/// How much longer a client must wait after it polled too early (RFC 8628 section 3.5).
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The maximum time between two polls.
const MAX_INTERVAL: Duration = Duration::from_secs(120);

/// Exchanges a device code for tokens once the user has approved it. A device code can be used once.
pub(super) fn exchange(app: &App, request: &TokenRequest<'_>) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let missing = ErrorResponse::new(ErrorCode::InvalidRequest, "device_code is missing");
    let presented = form.get("device_code")?.ok_or(missing)?;
    let unknown = invalid(ErrorCode::InvalidGrant, "the device code is unknown, expired or used");
    let presented = Handle::parse(presented).ok_or(unknown)?;
    let now = app.settings.clock.monotonic();
    let session_id: Box<str> = random_text(16)?.as_str().into();

    let polled = app.device_authorizations.update(presented.id(), |authorization| {
        if !presented.matches(&authorization.device_code) || authorization.client_id != caller.id {
            return (Err(unknown), RowAction::Keep);
        }
        if authorization.expires_at <= now {
            return (Err(invalid(ErrorCode::ExpiredToken, "the device code has expired")), RowAction::Keep);
        }
        let last_poll = authorization.last_poll.replace(now);
        if last_poll.is_some_and(|last_poll| now.saturating_sub(last_poll) < authorization.interval) {
            authorization.interval = authorization.interval.saturating_add(SLOW_DOWN).min(MAX_INTERVAL);
            let description = "the client polls too often: each such poll adds 5 seconds to the interval";
            return (Err(invalid(ErrorCode::SlowDown, description)), RowAction::Keep);
        }
        match &authorization.answer {
            Answer::Pending => {
                let error = invalid(ErrorCode::AuthorizationPending, "the user has not answered yet");
                (Err(error), RowAction::Keep)
            }
            Answer::Denied => (Err(invalid(ErrorCode::AccessDenied, "the user denied the request")), RowAction::Remove),
            Answer::Approved { subject, auth_time } => {
                let session = Session {
                    id: session_id,
                    client_id: caller.id.clone(),
                    subject: subject.clone(),
                    auth_time: *auth_time,
                    scopes: authorization.scopes.clone(),
                    audience: authorization.audience.clone(),
                    key: key.clone().filter(|_| caller.client.credential.is_public()),
                };
                (Ok((session, authorization.is_refreshable)), RowAction::Remove)
            }
        }
    });
    let (session, is_refreshable) = polled.unwrap_or(Err(unknown))?;
    let refresh_token = is_refreshable.then(|| refresh_token::issue(app, &session)).transpose()?;
    Ok(Issued {
        access_token: access_token::issue(app, &session, &session.scopes, key.as_deref())?,
        scopes: session.scopes,
        refresh_token,
    })
}

const fn invalid(error: ErrorCode, description: &'static str) -> ErrorResponse {
    ErrorResponse::new(error, description)
}
