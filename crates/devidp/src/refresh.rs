use portcullis_metadata::Secret;

use crate::{
    app::App,
    handle::Handle,
    oauth_error::{ErrorName, OAuthRefusal},
    session::{self, Session},
    tables::Keep,
};

/// All refresh tokens that follow each other in one session, of which the last alone counts.
pub(crate) struct Family {
    current: Handle,
    pub(crate) session: Session,
}

/// Makes the first refresh token of a session.
pub(crate) fn begin(app: &App, session: &Session) -> Result<Secret, OAuthRefusal> {
    let handle = Handle::generate()?;
    let token = Secret::new(handle.text());
    let id = handle.id().to_owned();
    // A full table lets its oldest go, so that there is always room.
    let _ = app.families.insert(&id, Family { current: handle, session: session.clone() }, |_| true);
    // The code may have been presented a second time meanwhile.
    if session::is_withdrawn(app, &session.id) {
        app.families.forget(|family| family.session.id == session.id);
        return Err(invalid("the code was used before"));
    }
    Ok(token)
}

/// Takes a refresh token and gives the next one (RFC 9700 section 4.14.2).
///
/// `judge` sees the session first; when it refuses, the token still counts. A token that was replaced before is in
/// two hands: its whole session is withdrawn.
pub(crate) fn rotate(
    app: &App,
    presented: &str,
    judge: impl FnOnce(&Session) -> Result<(), OAuthRefusal>,
) -> Result<(Session, Secret), OAuthRefusal> {
    enum Outcome {
        Next(Session),
        Refused(OAuthRefusal),
        Reused(Box<str>),
    }
    let unknown = invalid("the refresh token is unknown, too old or withdrawn");
    let presented = Handle::parse(presented).ok_or(unknown)?;
    let next = presented.renewed()?;
    let token = Secret::new(next.text());
    let outcome = app.families.look_up(presented.id(), |family| {
        if !presented.proves(&family.current) {
            return (Outcome::Reused(family.session.id.clone()), Keep::Removed);
        }
        if let Err(refusal) = judge(&family.session) {
            return (Outcome::Refused(refusal), Keep::AsItWas);
        }
        family.current = next;
        (Outcome::Next(family.session.clone()), Keep::Renewed)
    });
    match outcome.ok_or(unknown)? {
        Outcome::Next(session) => Ok((session, token)),
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::Reused(session_id) => {
            session::withdraw(app, &session_id);
            tracing::warn!("a refresh token was presented after it was replaced: its session is withdrawn");
            Err(invalid("the refresh token was used before: its session is withdrawn"))
        }
    }
}

/// The session of a refresh token that counts. It goes on.
pub(crate) fn find(app: &App, presented: &str) -> Option<Session> {
    let presented = Handle::parse(presented)?;
    app.families.look_up(presented.id(), |family| {
        let session = presented.proves(&family.current).then(|| family.session.clone());
        (session, Keep::AsItWas)
    })?
}

const fn invalid(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidGrant, description)
}
