//! The reasons why the endpoint rejects a request.

use portcullis_mcp::{EnvelopeError, EraError};
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

/// The reason of a rejection.
#[derive(Debug)]
pub(crate) enum Reason {
    /// No guard has authenticated the request.
    NoGuard,
    /// The method is not served. Without sessions, only POST is.
    Method { has_sessions: bool },
    /// The body could not be collected.
    Body(BodyError),
    /// The message needs a session and has no usable one.
    Session(SessionError),
    /// A GET or DELETE has no usable session.
    StreamSession(SessionError),
    /// The version header of a GET or DELETE names a revision that no session can have.
    StreamVersion(EraError),
    /// The body is not declared as JSON.
    ContentType,
    /// The message cannot be parsed.
    Message(EnvelopeError),
    /// A URI in the message is ambiguous, so no rule can be matched with it.
    Uri(UriError),
    /// The message follows no served revision.
    Era(EraError),
    /// The token is valid, but a rule denies the message.
    Rule(RuleViolation),
    /// The token is valid, but has no subject that could own a session.
    NoOwner,
    /// The limit of sessions is reached.
    SessionLimit(ReservationError),
    /// The inner service's response to `initialize` ended before the negotiated version.
    IncompleteResponse,
    /// The inner service's response to `initialize` did not name the negotiated version in time.
    LateResponse,
    /// The session has ended, and the end could not be recorded for restarts and other processes.
    EndNotRecorded(NotRecorded),
}

impl From<Reason> for Rejection {
    fn from(reason: Reason) -> Self {
        Self { reason, id: None }
    }
}

impl Reason {
    /// Returns the stable reason code, for logs. Clients do not see it.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoGuard => "endpoint.no_guard",
            Self::Method { .. } => "endpoint.method",
            Self::Body(error) => error.code(),
            Self::Session(error) | Self::StreamSession(error) => error.code(),
            Self::ContentType => "body.content_type",
            Self::Message(error) => error.code(),
            Self::Uri(error) => error.code(),
            Self::Era(error) | Self::StreamVersion(error) => error.code(),
            Self::Rule(RuleViolation::Claims(denial)) => denial.code(),
            Self::Rule(RuleViolation::Scopes(_)) => "scope.insufficient",
            Self::Rule(RuleViolation::RateLimit(_)) => "limit.tool",
            Self::NoOwner => "session.no_owner",
            Self::SessionLimit(error) => error.code(),
            Self::IncompleteResponse => "upstream.body_broken",
            Self::LateResponse => "upstream.head_timeout",
            Self::EndNotRecorded(error) => error.code(),
        }
    }
}
