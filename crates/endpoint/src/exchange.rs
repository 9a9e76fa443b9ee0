use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use portcullis_guard::RequestId;
use portcullis_session::{EndReason, InUse, Reservation, SessionStore};
use serde_json::value::RawValue;

use crate::{
    EndpointBody,
    layer::Shared,
    negotiated::Negotiated,
    respond::{self, Refusal, Refused},
    session::Sessions,
};

/// What an admitted request has to do with a session, and so what has to happen to its headers and its answer.
pub(crate) enum Exchange {
    /// A modern request: there is no session, whatever either side says.
    Without,
    /// `initialize`: room is held, and becomes a session when the inner service accepts. `id` is that of the message.
    Opening { room: Reservation, asked: Option<&'static str>, id: Option<Box<RawValue>> },
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
            Self::Without | Self::Opening { .. } => drop(sessions.take(headers)),
            Self::In(session) => sessions.name_to_backend(session, headers),
            Self::Closing(closing) => sessions.name_to_backend(&closing.session, headers),
        }
    }

    /// Acts on the inner service's answer, and puts the client's identifier in the place of the backend's.
    ///
    /// Sessions begin and end in a span with the request's id, so that the lines that tell of it have it.
    pub(crate) fn finish<B>(
        self,
        shared: &Shared,
        request_id: &RequestId,
        mut response: Response<B>,
    ) -> Response<EndpointBody<B>> {
        let sessions = &shared.sessions;
        let span = || tracing::info_span!("request", request.id = request_id.as_str()).entered();
        let status = response.status();
        let named = sessions.take(response.headers_mut());
        let (mut in_use, mut negotiated) = (None, None);
        match self {
            Self::Without => {}
            Self::Opening { room, asked, id } => {
                if status.is_success() {
                    let backend = named.map(|value| value.as_bytes().into()).unwrap_or_default();
                    let _span = span();
                    let session = match room.open(backend, None) {
                        Ok(session) => session,
                        Err(full) => {
                            let refused = Refused { refusal: Refusal::StoreFull(full), id };
                            return refused.response(shared.resource.challenges());
                        }
                    };
                    tracing::debug!(session = %session.log_hash(), "session opened");
                    sessions.name_to_client(&session.identifier(), response.headers_mut());
                    negotiated = Negotiated::begin(Arc::clone(session.session()), asked, response.headers());
                    in_use = Some(session);
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
            }
        }
        response.map(|body| match negotiated {
            Some(negotiated) => EndpointBody::opening(body, in_use, negotiated),
            None => EndpointBody::inner(body, in_use),
        })
    }
}
