use http::{HeaderMap, Response, StatusCode};
use portcullis_guard::Caller;
use portcullis_session::{EndReason, InUse, Reservation, Resolved, Session, SessionStore};

use crate::{
    EndpointBody,
    layer::Shared,
    negotiated::Negotiated,
    respond,
    session::Sessions,
    stream::{Opening, SessionStreams},
};

/// What an admitted request has to do with a session, and so what has to happen to its headers and its answer.
pub(crate) enum Exchange {
    /// A modern request: there is no session, whatever either side says.
    Without,
    /// `initialize`: room is held, and becomes a session when the inner service accepts.
    Opening { room: Reservation, asked: Option<&'static str> },
    /// A request in a session, which is in use until the answer has ended.
    In(InUse),
    /// DELETE.
    Closing(Closing),
}

/// A session that its owner wants to end. It ends, be it that the inner service does not confirm it, or that nobody waits
/// for its answer.
pub(crate) struct Closing {
    store: SessionStore,
    session: Resolved,
}

impl Closing {
    pub(crate) fn new(store: &SessionStore, session: Resolved) -> Self {
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
            Self::Without | Self::Opening { .. } => drop(sessions.take(headers)),
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
        let sessions = &shared.sessions;
        let span = || tracing::info_span!("request", request.id = caller.request_id().as_str()).entered();
        let open_stream = |session: Option<&Session>, headers: &HeaderMap| {
            shared.streams.open(&Opening { caller, resource: &shared.resource, session }, headers)
        };
        let status = response.status();
        let named = sessions.take(response.headers_mut());
        let (mut in_use, mut negotiated, mut stream) = (None, None, None);
        match self {
            Self::Without => stream = open_stream(None, response.headers()),
            Self::Opening { room, asked } => {
                if status.is_success() {
                    let backend = named.map(|value| value.as_bytes().into()).unwrap_or_default();
                    let session = room.open(backend, None);
                    let _span = span();
                    tracing::debug!(session = %session.log_hash(), "session opened");
                    sessions.name_to_client(&session.identifier(), response.headers_mut());
                    stream = open_stream(Some(&session), response.headers());
                    negotiated = Negotiated::begin(session, asked, response.headers());
                }
            }
            Self::In(session) => {
                let is_ours = named.is_some_and(|value| value.as_bytes() == session.backend());
                if status == StatusCode::NOT_FOUND && !session.backend().is_empty() {
                    let _span = span();
                    sessions.store.end(&session, EndReason::TransportClosed);
                } else if let Some(newer) = session.renewed() {
                    sessions.name_to_client(&newer, response.headers_mut());
                } else if is_ours {
                    sessions.name_to_client(&session.identifier(), response.headers_mut());
                }
                stream = open_stream(Some(&session), response.headers());
                in_use = Some(session);
            }
            Self::Closing(closing) => {
                let _span = span();
                let gone = status.is_success()
                    || matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
                    || closing.session.backend().is_empty();
                if gone {
                    sessions.store.end(&closing.session, EndReason::Deleted);
                }
                drop(closing);
                if !status.is_success() {
                    return respond::ended();
                }
                stream = open_stream(None, response.headers());
            }
        }
        response.map(|body| match negotiated {
            Some(negotiated) => EndpointBody::opening(body, negotiated, stream),
            None => EndpointBody::inner(body, in_use, stream),
        })
    }
}
