//! The reasons why the endpoint rejects a request.

use portcullis_mcp::{EnvelopeError, EraError};
use portcullis_reason_codes::ReasonCodes;
use portcullis_session::{NotRecorded, ReservationError};
use serde_json::value::RawValue;

use crate::{
    message::BodyError,
    rules::{RuleViolation, UriError},
    session::SessionError,
};

/// A rejected request.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) reason: Reason,
    /// The id of the rejected message.
    pub(crate) id: Option<Box<RawValue>>,
}

#[derive(Debug, ReasonCodes)]
pub(crate) enum Reason {
    /// No guard has authenticated the request.
    #[code = "endpoint.no_guard"]
    NoGuard,
    /// The method is not served. Without sessions, only POST is.
    #[code = "endpoint.method"]
    Method { has_sessions: bool },
    /// The body could not be collected.
    #[code(transparent)]
    Body(BodyError),
    /// The message needs a session and has no usable one.
    #[code(transparent)]
    Session(SessionError),
    /// A GET or DELETE has no usable session.
    #[code(transparent)]
    StreamSession(SessionError),
    /// The version header of a GET or DELETE names a revision that no session can have.
    #[code(transparent)]
    StreamVersion(EraError),
    /// The body is not declared as JSON.
    #[code = "body.content_type"]
    ContentType,
    /// The message cannot be parsed.
    #[code(transparent)]
    Message(EnvelopeError),
    /// A URI in the message is ambiguous, so no rule can be matched with it.
    #[code(transparent)]
    Uri(UriError),
    /// The message follows no served revision.
    #[code(transparent)]
    Era(EraError),
    /// The token is valid, but a rule denies the message.
    #[code(transparent)]
    Rule(RuleViolation),
    /// The token is valid, but has no subject that could own a session.
    #[code = "session.no_owner"]
    NoOwner,
    /// The limit of sessions is reached.
    #[code(transparent)]
    SessionLimit(ReservationError),
    /// The inner service's response to `initialize` ended before the negotiated version.
    #[code = "upstream.body_broken"]
    IncompleteResponse,
    /// The inner service's response to `initialize` did not name the negotiated version in time.
    #[code = "upstream.head_timeout"]
    LateResponse,
    /// The session has ended, and the end could not be recorded for restarts and other processes.
    #[code(transparent)]
    EndNotRecorded(NotRecorded),
}

impl From<Reason> for Rejection {
    fn from(reason: Reason) -> Self {
        Self { reason, id: None }
    }
}
