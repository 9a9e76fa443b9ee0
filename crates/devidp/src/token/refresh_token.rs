//! Refresh tokens and their rotation.

use portcullis_metadata::Secret;

use crate::{
    app::App,
    handle::Handle,
    providers::profile::RotationRule,
    server::oauth_error::{ErrorCode, ErrorResponse},
    tables::RowAction,
    token::session::{self, Session},
};

/// The refresh tokens of a session. Only the latest is valid.
pub(crate) struct TokenFamily {
    current: Handle,
    pub(crate) session: Session,
}

/// Issues the first refresh token of a session.
pub(crate) fn issue(app: &App, session: &Session) -> Result<Secret, ErrorResponse> {
    let handle = Handle::generate()?;
    let token = Secret::new(handle.as_str());
    let id = handle.id().to_owned();
    // Every entry is evictable, so this never fails.
    let _ = app.token_families.insert(&id, TokenFamily { current: handle, session: session.clone() }, |_| true);
    // The code may have been used a second time in the meantime.
    if session::is_withdrawn(app, &session.id) {
        app.token_families.remove_if(|family| family.session.id == session.id);
        return Err(invalid("the code was used before"));
    }
    Ok(token)
}

/// Uses a refresh token and returns its session and the refresh token for the response. It replaces the used one (RFC 9700
/// section 4.14.2), unless the imitated provider keeps that valid.
///
/// `check` validates the request against the session. If it fails, the token stays valid. If the token was replaced before,
/// it has been stolen, and its session is withdrawn.
pub(crate) fn rotate(
    app: &App,
    presented: &str,
    check: impl FnOnce(&Session) -> Result<(), ErrorResponse>,
) -> Result<(Session, Option<Secret>), ErrorResponse> {
    enum Rotation {
        Rotated(Session),
        Rejected(ErrorResponse),
        Reused(Box<str>),
    }
    let unknown = invalid("the refresh token is unknown, expired or revoked");
    let presented = Handle::parse(presented).ok_or(unknown)?;
    let next = presented.with_new_secret()?;
    let token = Secret::new(next.as_str());
    let rotation = app.token_families.update(presented.id(), |family| {
        if !presented.matches(&family.current) {
            return (Rotation::Reused(family.session.id.clone()), RowAction::Remove);
        }
        if let Err(error) = check(&family.session) {
            return (Rotation::Rejected(error), RowAction::Keep);
        }
        if matches!(app.profile.rotation, RotationRule::Replace) {
            family.current = next;
        }
        (Rotation::Rotated(family.session.clone()), RowAction::Renew)
    });
    match rotation.ok_or(unknown)? {
        Rotation::Rotated(session) => {
            let token = match app.profile.rotation {
                RotationRule::Replace => Some(token),
                RotationRule::KeepOld => Some(issue(app, &session)?),
                RotationRule::Keep => None,
            };
            Ok((session, token))
        }
        Rotation::Rejected(error) => Err(error),
        Rotation::Reused(session_id) => {
            session::withdraw(app, &session_id);
            tracing::warn!("a replaced refresh token was used again: its session is withdrawn");
            Err(invalid("the refresh token was used before: its session is withdrawn"))
        }
    }
}

/// Returns the session of a valid refresh token.
pub(crate) fn find(app: &App, presented: &str) -> Option<Session> {
    let presented = Handle::parse(presented)?;
    app.token_families.update(presented.id(), |family| {
        let session = presented.matches(&family.current).then(|| family.session.clone());
        (session, RowAction::Keep)
    })?
}

const fn invalid(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidGrant, description)
}
