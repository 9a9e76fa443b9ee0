//! The response to `initialize`, held until it names the negotiated revision.

use std::{pin::Pin, task::Context};

use bytes::Bytes;
use http::{Response, response::Parts};
use http_body::Body;
use portcullis_mcp::{EraError, Revision, Revisions};
use portcullis_session::Reservation;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    message::BudgetShare,
    response::{EndpointBody, MessageReader, Progress, Reason, Rejection},
    session::BackendSessionGuard,
};

/// A session that begins when the inner service accepts the request.
pub(crate) struct Opening {
    /// `None` if the resource has no sessions.
    pub(crate) reservation: Option<Reservation>,
    /// The version that the client requests.
    pub(crate) requested_version: Option<Box<str>>,
    /// The id of the `initialize` message.
    pub(crate) id: Option<Box<RawValue>>,
    /// When the head of the response must have been sent.
    pub(crate) deadline: Instant,
}

/// A response whose negotiated version is not known yet.
pub(crate) struct Negotiation<B> {
    opening: Opening,
    head: Parts,
    body: Pin<Box<B>>,
    backend_guard: Option<BackendSessionGuard>,
    reader: MessageReader,
    deadline: Pin<Box<Sleep>>,
}

/// The result of a negotiation.
pub(crate) enum Negotiated<B> {
    /// The session begins.
    Accepted(Box<Accepted<B>>),
    /// The negotiated revision is not served. The inner service's session ends.
    Rejected(Rejection),
}

/// A response that opens a session.
pub(crate) struct Accepted<B> {
    /// `None` if the resource has no sessions.
    pub(crate) reservation: Option<Reservation>,
    /// The negotiated revision, if it is known.
    pub(crate) revision: Option<Revision>,
    /// The id of the `initialize` message.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) backend_guard: Option<BackendSessionGuard>,
    pub(crate) response: Response<EndpointBody<B>>,
}

impl Opening {
    /// Returns the requested revision, if it is served. It applies if the response names none.
    fn requested_revision(&self, served: Revisions) -> Option<Revision> {
        self.requested_version.as_deref().and_then(Revision::parse).filter(|revision| has_sessions(*revision, served))
    }
}

impl<B: Body<Data = Bytes>> Negotiation<B> {
    /// Starts with the head of a response.
    ///
    /// # Errors
    /// Returns the opened session if the format of the response cannot be read. The requested revision applies then.
    pub(crate) fn begin(
        opening: Opening,
        response: Response<B>,
        served: Revisions,
        share: BudgetShare,
    ) -> Result<Box<Self>, Box<Accepted<B>>> {
        let (mut head, body) = response.into_parts();
        let backend_guard = head.extensions.remove::<BackendSessionGuard>();
        match MessageReader::new(&head.headers, share) {
            Some(reader) => {
                let (body, deadline) = (Box::pin(body), Box::pin(sleep_until(opening.deadline)));
                Ok(Box::new(Self { opening, head, body, backend_guard, reader, deadline }))
            }
            None => {
                let revision = opening.requested_revision(served);
                let Opening { reservation, id, .. } = opening;
                let response = Response::from_parts(head, EndpointBody::inner(body, None, None));
                Err(Box::new(Accepted { reservation, revision, id, backend_guard, response }))
            }
        }
    }

    /// Returns the body of the response.
    pub(crate) fn body(&mut self) -> Pin<&mut B> {
        self.body.as_mut()
    }

    /// Returns whether the time for the head is over. Otherwise the task wakes when it is.
    pub(crate) fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        self.deadline.as_mut().poll(cx).is_ready()
    }

    /// Returns the rejection for a head that is late.
    pub(crate) fn late(self: Box<Self>) -> Rejection {
        Rejection { reason: Reason::LateResponse, id: self.opening.id }
    }

    /// Reads the next piece of the body. `is_last` means that no piece follows.
    ///
    /// # Errors
    /// Returns the negotiation if it needs more of the body.
    pub(crate) fn read(
        mut self: Box<Self>,
        piece: &[u8],
        is_last: bool,
        served: Revisions,
    ) -> Result<Negotiated<B>, Box<Self>> {
        match self.reader.read(piece, is_last, negotiated_version) {
            Progress::Unfinished => Err(self),
            Progress::Found(version) => Ok(self.finish(Some(version), is_last, served)),
            Progress::NotFound => Ok(self.finish(None, is_last, served)),
        }
    }

    /// Returns the rejection for a body that failed.
    pub(crate) fn incomplete(self: Box<Self>) -> Rejection {
        Rejection { reason: Reason::IncompleteResponse, id: self.opening.id }
    }

    fn finish(self: Box<Self>, version: Option<String>, has_ended: bool, served: Revisions) -> Negotiated<B> {
        let Self { opening, head, body, backend_guard, reader, .. } = *self;
        let revision = match version {
            None => opening.requested_revision(served),
            Some(version) => {
                let is_served = |revision: &Revision| has_sessions(*revision, served);
                let Some(revision) = Revision::parse(&version).filter(is_served) else {
                    let requested = opening.requested_version.as_deref().unwrap_or_default();
                    let reason = Reason::Era(EraError::unsupported_negotiated(&version, requested, served));
                    return Negotiated::Rejected(Rejection { reason, id: opening.id });
                };
                Some(revision)
            }
        };
        let Opening { reservation, id, .. } = opening;
        let body = EndpointBody::initialize(reader.into_kept().into(), body, has_ended);
        let response = Response::from_parts(head, body);
        Negotiated::Accepted(Box::new(Accepted { reservation, revision, id, backend_guard, response }))
    }
}

/// Returns whether a revision is served and has sessions.
fn has_sessions(revision: Revision, served: Revisions) -> bool {
    !revision.is_modern() && served.contains(revision)
}

#[derive(Deserialize)]
struct RpcResponse {
    result: InitializeResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
}

/// Returns the negotiated version, if the message is the response to `initialize`.
fn negotiated_version(message: &[u8]) -> Option<String> {
    let response: RpcResponse = serde_json::from_slice(message).ok()?;
    Some(response.result.protocol_version)
}
