//! Event streams, which end with their authorization.
//!
//! The [`StreamRegistry`] has an entry for each open stream, with the expiry of its token. A sweep wakes the expired
//! streams, whose bodies then end after a complete event. The expiry moves when the owner uses the same session with a
//! newer token that has at least the scopes of the token that opened the stream. An introspected token is checked again
//! while the stream is open.

mod boundary;
mod guard;
mod open_stream;
mod readmission;
mod registry;
mod session_streams;

use portcullis_guard::RequestId;
use portcullis_metadata::{ResourceUri, UnixTime};
use portcullis_session::LogHash;
use portcullis_verifier::{Principal, RecheckFailure};

pub(crate) use self::{
    guard::{StreamGuard, StreamStop},
    registry::StreamOrigin,
    session_streams::SessionStreams,
};
pub use self::{readmission::StreamRequest, registry::StreamRegistry};

/// Observes event streams whose authorization ends.
pub trait StreamObserver: Send + Sync + 'static {
    /// [`StreamRegistry::sweep`] calls this once for each such stream, without holding a lock. It must not block.
    fn ended(&self, stream: &EndedStream<'_>);
}

/// Ignores all streams.
impl StreamObserver for () {
    fn ended(&self, _stream: &EndedStream<'_>) {}
}

/// An event stream whose authorization has ended. Its body ends after the next complete event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EndedStream<'a> {
    /// The time of the sweep.
    pub time: UnixTime,
    /// The id of the request that opened the stream.
    pub request_id: &'a RequestId,
    /// The session's hash for logs; `None` for a request without a session.
    pub session: Option<LogHash>,
    /// The resource.
    pub resource: &'a ResourceUri,
    /// The principal of the token that opened the stream.
    pub principal: &'a Principal,
    /// The reason.
    pub reason: StreamEndReason,
}

/// The reason why the authorization of an event stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamEndReason {
    /// The token has expired. The owner has not used the session with a newer token that has at least its scopes.
    TokenExpired,
    /// The issuer reports the token as inactive, or reports claims with which it would be rejected now.
    TokenInactive,
    /// The token has lost scopes that it had when the stream was opened.
    ScopesReduced,
    /// The issuer has not confirmed the token for two intervals.
    IntrospectionFailed,
    /// The request would not be admitted with the changed configuration.
    ConfigurationChanged,
}

impl StreamEndReason {
    /// Returns the stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::TokenExpired => "stream.token_expired",
            Self::TokenInactive => "stream.token_inactive",
            Self::ScopesReduced => "stream.scopes_reduced",
            Self::IntrospectionFailed => "stream.introspection_failed",
            Self::ConfigurationChanged => "stream.configuration_changed",
        }
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
