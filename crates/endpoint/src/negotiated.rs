//! The answer to `initialize`, held back until it says which revision the session follows.

use std::pin::Pin;

use bytes::Bytes;
use http::{Response, response::Parts};
use http_body::Body;
use portcullis_mcp::{EraError, Revision, Revisions};
use portcullis_session::Reservation;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    BackendSessionGuard, EndpointBody,
    answer::{AnswerReader, Progress},
    budget::Share,
    respond::{Refusal, Refused},
};

/// A session that begins when the inner service accepts.
pub(crate) struct Opening {
    pub(crate) room: Reservation,
    /// The version that the client asks for.
    pub(crate) requested: Option<Box<str>>,
    /// The id of the `initialize` message.
    pub(crate) id: Option<Box<RawValue>>,
}

/// An answer of which the negotiated version is not known yet.
pub(crate) struct Negotiation<B> {
    opening: Opening,
    head: Parts,
    body: Pin<Box<B>>,
    backend_guard: Option<BackendSessionGuard>,
    reader: AnswerReader,
}

/// How the negotiation ended.
pub(crate) enum Negotiated<B> {
    /// The session begins.
    Session(Box<Accepted<B>>),
    /// The session does not begin; the inner service's session ends.
    Refused(Refused),
}

/// An answer that opens a session.
pub(crate) struct Accepted<B> {
    pub(crate) room: Reservation,
    /// What the session follows, as far as that is known.
    pub(crate) version: Option<Revision>,
    /// The id of the `initialize` message.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) backend_guard: Option<BackendSessionGuard>,
    pub(crate) response: Response<EndpointBody<B>>,
}

impl Opening {
    /// The revision that applies if the response does not name one: the requested one, if it is served.
    fn requested(&self, served: Revisions) -> Option<Revision> {
        self.requested.as_deref().and_then(Revision::parse).filter(|revision| has_sessions(*revision, served))
    }
}

impl<B: Body<Data = Bytes>> Negotiation<B> {
    /// Begins where the head of the answer ends.
    ///
    /// # Errors
    /// The opened session, when the answer is in no form that can be read. It then follows what the client asked for.
    pub(crate) fn begin(
        opening: Opening,
        response: Response<B>,
        served: Revisions,
        share: Share,
    ) -> Result<Box<Self>, Box<Accepted<B>>> {
        let (mut head, body) = response.into_parts();
        let backend_guard = head.extensions.remove::<BackendSessionGuard>();
        match AnswerReader::new(&head.headers, share) {
            Some(reader) => Ok(Box::new(Self { opening, head, body: Box::pin(body), backend_guard, reader })),
            None => {
                let version = opening.requested(served);
                let Opening { room, id, .. } = opening;
                let response = Response::from_parts(head, EndpointBody::inner(body, None, None));
                Err(Box::new(Accepted { room, version, id, backend_guard, response }))
            }
        }
    }

    /// The body of the answer.
    pub(crate) fn body(&mut self) -> Pin<&mut B> {
        self.body.as_mut()
    }

    /// Takes the next piece of the body; `last` tells that nothing follows. Whether there is nothing more to wait for.
    pub(crate) fn take(
        mut self: Box<Self>,
        piece: &[u8],
        last: bool,
        served: Revisions,
    ) -> Result<Negotiated<B>, Box<Self>> {
        match self.reader.take(piece, last, version) {
            Progress::Unfinished => Err(self),
            Progress::Found(version) => Ok(self.settle(Some(version), last, served)),
            Progress::Nothing => Ok(self.settle(None, last, served)),
        }
    }

    /// The body of the answer broke off.
    pub(crate) fn broken(self: Box<Self>) -> Refused {
        Refused { refusal: Refusal::AnswerBroken, id: self.opening.id }
    }

    fn settle(self: Box<Self>, negotiated: Option<String>, ended: bool, served: Revisions) -> Negotiated<B> {
        let Self { opening, head, body, backend_guard, reader } = *self;
        let version = match negotiated {
            None => opening.requested(served),
            Some(negotiated) => {
                let is_served = |revision: &Revision| has_sessions(*revision, served);
                let Some(revision) = Revision::parse(&negotiated).filter(is_served) else {
                    let requested = opening.requested.as_deref().unwrap_or_default();
                    let refusal = Refusal::Era(EraError::unsupported_negotiated(&negotiated, requested, served));
                    return Negotiated::Refused(Refused { refusal, id: opening.id });
                };
                Some(revision)
            }
        };
        let response = Response::from_parts(head, EndpointBody::held_back(reader.into_kept().into(), body, ended));
        Negotiated::Session(Box::new(Accepted { room: opening.room, version, id: opening.id, backend_guard, response }))
    }
}

/// Whether a revision is served and has sessions.
fn has_sessions(revision: Revision, served: Revisions) -> bool {
    !revision.is_modern() && served.contains(revision)
}

/// The one member of the answer that matters.
#[derive(Deserialize)]
struct Answer {
    result: InitializeResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
}

/// The version in a message, if it is the answer.
fn version(message: &[u8]) -> Option<String> {
    let answer: Answer = serde_json::from_slice(message).ok()?;
    Some(answer.result.protocol_version)
}
