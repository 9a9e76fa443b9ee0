//! [`SessionError`]: why a request has no usable session.

use portcullis_session::ResolveError;

/// The reason why a request has no usable session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionError {
    /// The session header is missing.
    Missing,
    /// The session header is repeated.
    Repeated,
    /// The caller's token has no subject, so the caller cannot own a session.
    NoOwner,
    /// The identifier is not that of an active session of the caller. The response does not say why.
    NotResolved(ResolveError),
    /// The caller's session has ended, and the response says so.
    Ended,
}

impl SessionError {
    /// Returns the stable reason code.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Missing => "session.missing",
            Self::Repeated => "session.repeated",
            Self::NoOwner => "session.no_owner",
            Self::NotResolved(error) => error.code(),
            Self::Ended => ResolveError::Ended.code(),
        }
    }
}
