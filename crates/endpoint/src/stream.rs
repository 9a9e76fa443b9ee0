//! Event streams, which end with their authorization, with their session, or at a shutdown.
//!
//! The [`StreamRegistry`] has an entry for each open stream, with the expiry of its token. A sweep
//! wakes the streams that must end, whose bodies then end after a complete event. The response to
//! a request, which was authorized when it was made, may continue for a while. The expiry moves
//! when the owner uses the same session with a newer token that has at least the scopes of the
//! token that opened the stream. An introspected token is checked again while the stream is open.
//! The sweep also wakes silent streams, which then send a comment.

mod authorization;
mod boundary;
mod guard;
mod open_stream;
mod readmission;
mod registry;
mod session_streams;
mod silence;
mod stopped;

use std::{fmt, time::Duration};

use portcullis_guard::RequestId;
use portcullis_metadata::{ResourceUri, UnixTime};
use portcullis_reason_codes::ReasonCodes;
use portcullis_session::LogHash;
use portcullis_verifier::{Principal, RecheckFailure};
use serde_json::value::RawValue;

pub(crate) use self::{
    guard::{StreamGuard, StreamOrigin, StreamStop},
    session_streams::SessionStreams,
};
pub use self::{readmission::StreamRequest, registry::StreamRegistry, stopped::StreamStopped};

/// Observes event streams that the endpoint ends.
pub trait StreamObserver: Send + Sync + 'static {
    /// The [`StreamRegistry`] calls this once for each such stream, without holding a lock. It must
    /// not block.
    fn ended(&self, stream: &EndedStream<'_>);
}

/// Ignores all streams.
impl StreamObserver for () {
    fn ended(&self, _stream: &EndedStream<'_>) {}
}

/// An event stream that the endpoint ends. Its body ends after the current event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EndedStream<'a> {
    /// The time at which the registry decided to end it.
    pub time: UnixTime,
    /// The id of the request that opened the stream.
    pub request_id: &'a RequestId,
    /// The session's hash for logs; `None` for a request without a session.
    pub session: Option<LogHash>,
    /// The resource.
    pub resource: &'a ResourceUri,
    /// The principal of the token that opened the stream; `None` if authentication is off.
    pub principal: Option<&'a Principal>,
    /// The reason.
    pub reason: StreamEndReason,
}

/// The reason why the endpoint ends an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ReasonCodes)]
#[non_exhaustive]
pub enum StreamEndReason {
    /// The token has expired, and the grace of a response is over. The owner has not used the
    /// session with a newer token that has at least its scopes.
    #[code = "stream.token_expired"]
    TokenExpired,
    /// The issuer reports the token as inactive, or reports claims with which it would be rejected
    /// now.
    #[code = "stream.token_inactive"]
    TokenInactive,
    /// The token has lost scopes that it had when the stream was opened.
    #[code = "stream.scopes_reduced"]
    ScopesReduced,
    /// The issuer has not confirmed the token for two intervals.
    #[code = "stream.introspection_failed"]
    IntrospectionFailed,
    /// The request would not be admitted with the changed configuration.
    #[code = "stream.configuration_changed"]
    ConfigurationChanged,
    /// The session of the stream has ended.
    #[code = "stream.session_ended"]
    SessionEnded,
    /// The server shuts down, and the client only listens.
    #[code = "stream.shutdown"]
    Shutdown,
    /// An administrator has ended the streams of this principal or issuer.
    #[code = "stream.administrator"]
    Administrator,
    /// The broker has ended the grant of the token, or the sign-in of its user.
    #[code = "stream.grant_ended"]
    GrantEnded,
}

/// The purpose of an event stream, which determines how it ends.
#[derive(Debug)]
pub(crate) enum StreamPurpose {
    /// The stream answers a request and ends with the response.
    Answer,
    /// The client listens until one side ends the stream.
    Listen {
        /// The id of a `subscriptions/listen` request, which has a result; `None` for GET.
        id: Option<Box<RawValue>>,
    },
}

impl StreamPurpose {
    fn is_listening(&self) -> bool {
        matches!(self, Self::Listen { .. })
    }
}

impl fmt::Display for StreamEndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SessionEnded => "its session has ended",
            Self::Shutdown => "the server shuts down",
            Self::Administrator => "an administrator has ended it",
            Self::GrantEnded => "the grant of its token has ended",
            _ => "its authorization has ended",
        })
    }
}

impl From<RecheckFailure> for StreamEndReason {
    fn from(lost: RecheckFailure) -> Self {
        match lost {
            RecheckFailure::Expired => Self::TokenExpired,
            RecheckFailure::Unconfirmed => Self::IntrospectionFailed,
            _ => Self::TokenInactive,
        }
    }
}

/// Returns a time of the monotonic clock in milliseconds, saturating.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
