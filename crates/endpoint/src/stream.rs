//! Event streams end with the authorization that they were opened with.
//!
//! An open stream is an entry of the [`StreamRegistry`], with the moment until which its token is valid. A sweep compares
//! the entries with the time and wakes the streams that are over; their bodies then end behind a complete event. In a
//! session the moment moves when the owner uses the session with a newer token that has at least the scopes of the token
//! that opened the stream. An introspected token is checked again while the stream is open.

mod body;
mod boundary;
mod entry;
mod of_session;
mod registry;

use portcullis_guard::RequestId;
use portcullis_metadata::{ResourceUri, UnixTime};
use portcullis_session::LogHash;
use portcullis_verifier::{Principal, RecheckFailure};

pub(crate) use body::{End, StreamGuard};
pub(crate) use of_session::SessionStreams;
pub(crate) use registry::Opening;
pub use registry::StreamRegistry;

/// Hears of event streams that end because their authorization has ended.
pub trait StreamObserver: Send + Sync + 'static {
    /// Called once for each such stream, by [`StreamRegistry::sweep`], with no lock held. Keep it short.
    fn ended(&self, stream: &EndedStream<'_>);
}

/// Hears nothing.
impl StreamObserver for () {
    fn ended(&self, _stream: &EndedStream<'_>) {}
}

/// An event stream whose authorization has ended. Its body ends behind the next complete event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EndedStream<'a> {
    /// When this was noticed.
    pub time: UnixTime,
    /// The id of the request that the stream answers.
    pub request_id: &'a RequestId,
    /// The session, for logs; `None` for a request without one.
    pub session: Option<LogHash>,
    /// The resource.
    pub resource: &'a ResourceUri,
    /// The principal of the token that opened the stream.
    pub principal: &'a Principal,
    /// Why it ends.
    pub reason: StreamEndReason,
}

/// Why the authorization of an event stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamEndReason {
    /// The token has expired, and the owner has used the session with no newer one that has at least its scopes.
    TokenExpired,
    /// The issuer calls the token inactive, or says something of it for which it would be refused now.
    TokenInactive,
    /// The issuer took scopes away that the token had when the stream was opened.
    ScopesReduced,
    /// The issuer has not confirmed the token for two intervals.
    IntrospectionFailed,
}

impl StreamEndReason {
    /// The stable reason code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::TokenExpired => "stream.token_expired",
            Self::TokenInactive => "stream.token_inactive",
            Self::ScopesReduced => "stream.scopes_reduced",
            Self::IntrospectionFailed => "stream.introspection_failed",
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
