//! [`SessionError`]: why a request has no usable session.

use portcullis_reason_codes::ReasonCodes;
use portcullis_session::ResolveError;

/// The reason why a request has no usable session.
#[derive(Clone, Copy, Debug, ReasonCodes)]
pub(crate) enum SessionError {
    /// The session header is missing.
    #[code = "session.missing"]
    Missing,
    /// The session header is repeated.
    #[code = "session.repeated"]
    Repeated,
    /// The caller's token has no subject, so the caller cannot own a session.
    #[code = "session.no_owner"]
    NoOwner,
    /// The identifier is not that of an active session of the caller. The response does not say
    /// why.
    #[code(transparent)]
    NotResolved(ResolveError),
    /// The caller's session has ended, and the response says so.
    #[code = "session.ended"]
    Ended,
}
