//! How an admitted request uses a session, and what its response does to the session.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use portcullis_guard::{Caller, RequestId};
use portcullis_mcp::Revision;
use portcullis_session::{EndReason, EndRecord, InUse, Session, SessionStore};

use super::negotiation::{Accepted, Opening};
use crate::{
    message::BudgetShare,
    response::{EndpointBody, Reason, Rejection, RevisionsReader, session_ended},
    session::Sessions,
    state::EndpointState,
    stream::{SessionStreams, StreamGuard, StreamOrigin, StreamPurpose},
};

/// How an admitted request uses a session. This determines the session headers of both directions.
pub(crate) enum SessionUse {
    /// A modern request has no session. Session headers are removed.
    None {
        is_discover: bool,
        purpose: StreamPurpose,
    },
    /// A legacy request of a resource without sessions. Session headers are removed.
    Stateless,
    /// `initialize` holds a reservation, if the resource has sessions. It becomes a session when
    /// the inner service accepts the request.
    Open(Opening),
    /// The request uses a session until the response has ended.
    Existing(ExistingSession),
    /// DELETE ends the session.
    Delete(Deletion),
}

/// A session in use, and the identifier that the client has sent.
pub(crate) struct ExistingSession {
    session: InUse,
    client_identifier: Option<HeaderValue>,
    purpose: StreamPurpose,
}

/// A session that its owner deletes. The session ends on drop even if the inner service does not
/// confirm the deletion.
pub(crate) struct Deletion {
    store: SessionStore,
    session: InUse,
}

/// A response, and the end of a session that must be recorded before the response is sent.
pub(crate) struct Finished<B> {
    pub(crate) response: Response<EndpointBody<B>>,
    pub(crate) end: Option<EndRecord>,
}

impl SessionUse {
    /// Replaces the client's identifier by the backend's.
    pub(crate) fn prepare_headers(&mut self, sessions: &Sessions, headers: &mut HeaderMap) {
        match self {
            Self::None { .. } | Self::Stateless | Self::Open(_) => {
                drop(sessions.take_header(headers))
            }
            Self::Existing(existing) => {
                existing.client_identifier =
                    sessions.set_backend_identifier(&existing.session, headers);
            }
            Self::Delete(deletion) => {
                drop(sessions.set_backend_identifier(&deletion.session, headers))
            }
        }
    }

    /// Extends the open streams of the session with the token of the admitted request.
    pub(crate) fn extend_streams(&self, caller: &Caller) {
        if let Self::Existing(existing) = self {
            SessionStreams::token_used(&existing.session, caller);
        }
    }

    /// Processes the response of the inner service: ends the session if necessary, and replaces the
    /// backend's identifier by the client's. [`record_session`] processes a successful response to
    /// `initialize` instead.
    pub(crate) fn finish<B>(
        self,
        endpoint: &EndpointState,
        caller: &Caller,
        mut response: Response<B>,
    ) -> Finished<B> {
        if !matches!(self, Self::Existing(_)) {
            endpoint.sessions.take_header(response.headers_mut());
        }
        match self {
            Self::None {
                is_discover,
                purpose,
            } => finish_modern(endpoint, caller, is_discover, purpose, response).into(),
            Self::Stateless => finish_without_session(endpoint, caller, response).into(),
            // The inner service has rejected the `initialize`.
            Self::Open(_) => response
                .map(|body| EndpointBody::inner(body, None, None))
                .into(),
            Self::Existing(existing) => existing.finish(endpoint, caller, response).into(),
            Self::Delete(deletion) => deletion.finish(endpoint, caller, response),
        }
    }
}

impl ExistingSession {
    /// `purpose` is that of the response if it is an event stream.
    pub(crate) fn new(session: InUse, purpose: StreamPurpose) -> Self {
        Self {
            session,
            client_identifier: None,
            purpose,
        }
    }

    /// Ends the session if the inner service does not know it. Otherwise replaces the backend's
    /// identifier by the client's.
    fn finish<B>(
        self,
        endpoint: &EndpointState,
        caller: &Caller,
        mut response: Response<B>,
    ) -> Response<EndpointBody<B>> {
        let Self {
            session,
            client_identifier,
            purpose,
        } = self;
        let sessions = &endpoint.sessions;
        let has_backend_session = !session.backend_id().is_empty();
        let is_named = sessions.is_backend_identifier(&session, response.headers());
        if response.status() == StatusCode::NOT_FOUND && has_backend_session {
            sessions.take_header(response.headers_mut());
            let _span = request_span(caller.request_id());
            sessions.store.end(&session, EndReason::TransportClosed);
        } else if let Some(newer) = session.rotated_identifier() {
            sessions.set_client_identifier(&newer, response.headers_mut());
        } else if let Some(identifier) = client_identifier.filter(|_| is_named) {
            sessions.set_header(identifier, response.headers_mut());
        } else {
            sessions.take_header(response.headers_mut());
        }
        let stream = open_stream(
            endpoint,
            caller,
            Some(session.session()),
            purpose,
            &response,
        );
        response.map(|body| EndpointBody::inner(body, Some(session), stream))
    }
}

impl Deletion {
    pub(crate) fn new(store: &SessionStore, session: InUse) -> Self {
        Self {
            store: store.clone(),
            session,
        }
    }

    /// Ends the session. The client learns only whether the session has ended, not whether the
    /// inner service confirms it.
    fn finish<B>(
        self,
        endpoint: &EndpointState,
        caller: &Caller,
        response: Response<B>,
    ) -> Finished<B> {
        let status = response.status();
        let is_confirmed = status.is_success()
            || matches!(
                status,
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
            )
            || self.session.backend_id().is_empty();
        let reason = if is_confirmed {
            EndReason::Deleted
        } else {
            EndReason::DeleteFailed
        };
        let end = {
            let _span = request_span(caller.request_id());
            // The session may have ended in the meantime, by another DELETE or for another reason,
            // without a record.
            self.store.end_and_record(&self.session, reason)
        };
        let response = if status.is_success() {
            finish_without_session(endpoint, caller, response)
        } else {
            session_ended()
        };
        Finished {
            response,
            end: Some(end),
        }
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        self.store.end(&self.session, EndReason::DeleteFailed);
    }
}

impl<B> From<Response<EndpointBody<B>>> for Finished<B> {
    fn from(response: Response<EndpointBody<B>>) -> Self {
        Self {
            response,
            end: None,
        }
    }
}

/// Processes the response to a modern request. That to `server/discover` names the revisions of the
/// inner service.
fn finish_modern<B>(
    endpoint: &EndpointState,
    caller: &Caller,
    is_discover: bool,
    purpose: StreamPurpose,
    response: Response<B>,
) -> Response<EndpointBody<B>> {
    let share = || BudgetShare::empty(&endpoint.budget);
    let revisions = &endpoint.upstream_revisions;
    let reader = RevisionsReader::new(
        is_discover,
        response.status(),
        response.headers(),
        revisions,
        share,
    );
    let stream = open_stream(endpoint, caller, None, purpose, &response);
    response.map(|body| EndpointBody::with_reader(body, reader, stream))
}

/// Processes the response to a request that uses no session, or none any more.
fn finish_without_session<B>(
    endpoint: &EndpointState,
    caller: &Caller,
    response: Response<B>,
) -> Response<EndpointBody<B>> {
    let stream = open_stream(endpoint, caller, None, StreamPurpose::Answer, &response);
    response.map(|body| EndpointBody::inner(body, None, stream))
}

/// Records the session that a response opens, and replaces the backend's identifier by the
/// client's. A resource without sessions has neither.
pub(crate) fn record_session<B>(
    accepted: Accepted<B>,
    endpoint: &EndpointState,
    caller: &Caller,
) -> Response<EndpointBody<B>> {
    let Accepted {
        reservation,
        revision,
        id,
        backend_guard,
        mut response,
    } = accepted;
    let sessions = &endpoint.sessions;
    let backend_identifier = sessions.take_header(response.headers_mut());
    let Some(reservation) = reservation else {
        // Without a session, the dropped guard ends the inner service's.
        let stream = open_stream(endpoint, caller, None, StreamPurpose::Answer, &response);
        response.body_mut().attach(None, stream);
        return response;
    };
    let backend_id = backend_identifier
        .map(|value| value.as_bytes().into())
        .unwrap_or_default();
    let _span = request_span(caller.request_id());
    let session = match reservation.open(backend_id, revision.map(Revision::as_str)) {
        Ok(session) => session,
        // The dropped guard ends the inner service's session.
        Err(error) => {
            return endpoint.reject(&Rejection {
                reason: Reason::SessionLimit(error),
                id,
            });
        }
    };
    // From now on the store reports the end of the session.
    if let Some(guard) = backend_guard {
        guard.disarm();
    }
    // Allocated beside the session: allocations that outlive streams among those of streams keep
    // their pages from being freed.
    SessionStreams::of(session.session());
    tracing::debug!(session = %session.log_hash(), "session opened");
    sessions.set_client_identifier(&session.identifier(), response.headers_mut());
    let stream = open_stream(
        endpoint,
        caller,
        Some(session.session()),
        StreamPurpose::Answer,
        &response,
    );
    response.body_mut().attach(Some(session), stream);
    response
}

/// Registers a response that is an event stream, so that it ends with its authorization or session.
fn open_stream<B>(
    endpoint: &EndpointState,
    caller: &Caller,
    session: Option<&Arc<Session>>,
    purpose: StreamPurpose,
    response: &Response<B>,
) -> Option<StreamGuard> {
    let origin = StreamOrigin {
        caller,
        resource: &endpoint.resource,
        session,
        purpose,
        response_grace: endpoint.response_grace,
    };
    endpoint
        .streams
        .open(origin, response.headers(), response.extensions())
}

/// Adds the request's id to the log lines about the end or the opening of a session.
fn request_span(request_id: &RequestId) -> tracing::span::EnteredSpan {
    tracing::info_span!("request", request.id = request_id.as_str()).entered()
}
