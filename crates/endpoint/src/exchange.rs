//! What an admitted request does with a session.

use http::{HeaderMap, Response, StatusCode};
use portcullis_guard::{Caller, RequestId};
use portcullis_mcp::Revision;
use portcullis_session::{EndReason, InUse, Session, SessionStore};

use crate::{
    EndpointBody,
    budget::Share,
    layer::Shared,
    negotiated::{Accepted, Opening},
    respond::{self, Refusal, Refused},
    session::Sessions,
    stream::{self, SessionStreams, StreamGuard},
    upstream_revisions::Learning,
};

/// What an admitted request has to do with a session, and so what has to happen to its headers and its answer.
pub(crate) enum Exchange {
    /// A modern request: there is no session, whatever either side says.
    Without { discovers: bool },
    /// `initialize`: room is held, and becomes a session when the inner service accepts.
    Opening(Opening),
    /// A request in a session, which is in use until the answer has ended.
    In(InUse),
    /// DELETE.
    Closing(Closing),
}

/// A session that its owner wants to end. It ends, be it that the inner service does not confirm it, or that nobody waits
/// for its answer.
pub(crate) struct Closing {
    store: SessionStore,
    session: InUse,
}

impl Closing {
    pub(crate) fn new(store: &SessionStore, session: InUse) -> Self {
        Self { store: store.clone(), session }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.store.end(&self.session, EndReason::DeleteFailed);
    }
}

impl Exchange {
    /// Puts the backend's identifier in the place of the client's.
    pub(crate) fn prepare(&self, sessions: &Sessions, headers: &mut HeaderMap) {
        match self {
            Self::Without { .. } | Self::Opening(_) => drop(sessions.take(headers)),
            Self::In(session) => sessions.name_to_backend(session, headers),
            Self::Closing(closing) => sessions.name_to_backend(&closing.session, headers),
        }
    }

    /// The request is admitted: its token may extend the open streams of its session.
    pub(crate) fn note_token(&self, caller: &Caller) {
        if let Self::In(session) = self {
            SessionStreams::token_used(session, caller);
        }
    }

    /// Acts on the inner service's answer, and puts the client's identifier in the place of the backend's.
    ///
    /// Sessions begin and end in a span with the request's id, so that the lines that tell of it have it.
    pub(crate) fn finish<B>(
        self,
        shared: &Shared,
        caller: &Caller,
        mut response: Response<B>,
    ) -> Response<EndpointBody<B>> {
        let (sessions, request_id) = (&shared.sessions, caller.request_id());
        let status = response.status();
        let named = sessions.take(response.headers_mut());
        let (mut in_use, mut stream) = (None, None);
        match self {
            // A refused `initialize` opens nothing; an accepted one is [recorded](record).
            Self::Opening(_) => {}
            Self::Without { discovers } => {
                let share = || Share::empty(&shared.budget);
                let learned = &shared.upstream_revisions;
                let learning = Learning::begin(discovers, status, response.headers(), learned, share);
                let stream = open_stream(shared, caller, None, response.headers());
                return response.map(|body| EndpointBody::read_along(body, learning, stream));
            }
            Self::In(session) => {
                let is_ours = named.is_some_and(|value| value.as_bytes() == session.backend_id());
                if status == StatusCode::NOT_FOUND && !session.backend_id().is_empty() {
                    let _span = span(request_id);
                    sessions.store.end(&session, EndReason::TransportClosed);
                } else if let Some(newer) = session.rotated_identifier() {
                    sessions.name_to_client(&newer, response.headers_mut());
                } else if is_ours {
                    sessions.name_to_client(&session.identifier(), response.headers_mut());
                }
                stream = open_stream(shared, caller, Some(&session), response.headers());
                in_use = Some(session);
            }
            Self::Closing(closing) => {
                let _span = span(request_id);
                let gone = status.is_success()
                    || matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
                    || closing.session.backend_id().is_empty();
                if gone {
                    sessions.store.end(&closing.session, EndReason::Deleted);
                }
                drop(closing);
                if !status.is_success() {
                    return respond::ended();
                }
                stream = open_stream(shared, caller, None, response.headers());
            }
        }
        response.map(|body| EndpointBody::inner(body, in_use, stream))
    }
}

/// Records the session that an answer opens, and puts its identifier in the place of the backend's.
pub(crate) fn record<B>(accepted: Accepted<B>, shared: &Shared, caller: &Caller) -> Response<EndpointBody<B>> {
    let Accepted { room, version, id, backend_guard, mut response } = accepted;
    let sessions = &shared.sessions;
    let named = sessions.take(response.headers_mut());
    let backend = named.map(|value| value.as_bytes().into()).unwrap_or_default();
    let _span = span(caller.request_id());
    let opened = room.open(backend, version.map(Revision::as_str));
    let session = match opened {
        Ok(session) => session,
        // The dropped guard ends the inner service's session.
        Err(full) => return shared.refuse(&Refused { refusal: Refusal::SessionLimit(full), id }),
    };
    // From now on the store reports the end of the session.
    if let Some(guard) = backend_guard {
        guard.disarm();
    }
    tracing::debug!(session = %session.log_hash(), "session opened");
    sessions.name_to_client(&session.identifier(), response.headers_mut());
    let stream = open_stream(shared, caller, Some(&session), response.headers());
    response.body_mut().attach(session, stream);
    response
}

/// Registers a response that is an event stream, so that it ends with its authorization.
fn open_stream(
    shared: &Shared,
    caller: &Caller,
    session: Option<&Session>,
    headers: &HeaderMap,
) -> Option<StreamGuard> {
    shared.streams.open(&stream::Opening { caller, resource: &shared.resource, session }, headers)
}

/// Lines that tell of a session have the id of the request that began or ended it.
fn span(request_id: &RequestId) -> tracing::span::EnteredSpan {
    tracing::info_span!("request", request.id = request_id.as_str()).entered()
}
