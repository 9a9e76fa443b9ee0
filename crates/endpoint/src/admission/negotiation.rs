//! The response to `initialize`, held until it names the negotiated revision.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Response, response::Parts};
use http_body::Body;
use portcullis_mcp::{EraError, Revision, Revisions};
use portcullis_session::Reservation;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    message::{BodyError, BudgetShare},
    response::{EndpointBody, MessageReader, Progress, Reason, Rejection},
    session::BackendSessionGuard,
};

/// The bytes of a response that do not count against the budget of bodies. Most responses are
/// shorter, so that sessions can be opened while the budget is exhausted. The limits of sessions
/// bound how many there are.
const UNCOUNTED: usize = 16 << 10;

/// The session that begins when the inner service accepts an `initialize`.
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

/// Waits until the response to `initialize` names the negotiated version, and completes with the
/// result.
pub(crate) struct Negotiation<B> {
    /// `None` after completion.
    held: Option<Box<HeldResponse<B>>>,
    /// The revisions that the endpoint serves.
    served: Revisions,
}

/// A response whose negotiated version is not known yet.
struct HeldResponse<B> {
    opening: Opening,
    head: Parts,
    body: Pin<Box<B>>,
    backend_guard: Option<BackendSessionGuard>,
    reader: MessageReader,
    deadline: Pin<Box<Sleep>>,
}

/// The version that a response names.
struct NamedVersion {
    /// `None` if the response names none.
    version: Option<String>,
    /// Whether the body has been read to its end.
    has_ended: bool,
}

/// The result of a negotiation.
pub(crate) enum Negotiated<B> {
    /// The session begins.
    Accepted(Box<Accepted<B>>),
    /// The negotiated revision is not served, or the response is late or incomplete. The inner
    /// service's session ends.
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
        self.requested_version
            .as_deref()
            .and_then(Revision::parse)
            .filter(|revision| has_sessions(*revision, served))
    }

    /// Returns the revision of the version that the response names, or the requested one. Fails if
    /// the response names a version that is not served or has no sessions.
    fn negotiated_revision(
        &self,
        named: Option<String>,
        served: Revisions,
    ) -> Result<Option<Revision>, Reason> {
        let Some(named) = named else {
            return Ok(self.requested_revision(served));
        };
        match Revision::parse(&named).filter(|revision| has_sessions(*revision, served)) {
            Some(revision) => Ok(Some(revision)),
            None => {
                let requested = self.requested_version.as_deref().unwrap_or_default();
                Err(Reason::Era(EraError::unsupported_negotiated(
                    &named, requested, served,
                )))
            }
        }
    }
}

impl<B: Body<Data = Bytes>> Negotiation<B> {
    /// Starts with the head of a response. Returns the opened session if the format of the response
    /// cannot be read. The requested revision applies then.
    pub(crate) fn begin(
        opening: Opening,
        response: Response<B>,
        served: Revisions,
        share: BudgetShare,
    ) -> Result<Self, Box<Accepted<B>>> {
        let (mut head, body) = response.into_parts();
        let backend_guard = head.extensions.remove::<BackendSessionGuard>();
        match MessageReader::new(&head.headers, share) {
            Some(reader) => {
                let reader = reader.with_uncounted(UNCOUNTED);
                let body = Box::pin(body);
                let deadline = Box::pin(sleep_until(opening.deadline));
                let held = Box::new(HeldResponse {
                    opening,
                    head,
                    body,
                    backend_guard,
                    reader,
                    deadline,
                });
                Ok(Self {
                    held: Some(held),
                    served,
                })
            }
            None => {
                let revision = opening.requested_revision(served);
                let Opening {
                    reservation, id, ..
                } = opening;
                let response = Response::from_parts(head, EndpointBody::inner(body, None, None));
                Err(Box::new(Accepted {
                    reservation,
                    revision,
                    id,
                    backend_guard,
                    response,
                }))
            }
        }
    }
}

impl<B: Body<Data = Bytes>> Future for Negotiation<B> {
    type Output = Negotiated<B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(held) = &mut this.held else {
            return Poll::Pending;
        };
        let named = ready!(held.poll_version(cx));
        let Some(held) = this.held.take() else {
            return Poll::Pending;
        };
        Poll::Ready(held.finish(named, this.served))
    }
}

impl<B: Body<Data = Bytes>> HeldResponse<B> {
    /// Reads the body up to the negotiated version, or to the end if there is none.
    fn poll_version(&mut self, cx: &mut Context<'_>) -> Poll<Result<NamedVersion, Reason>> {
        loop {
            let Poll::Ready(frame) = self.body.as_mut().poll_frame(cx) else {
                return self
                    .deadline
                    .as_mut()
                    .poll(cx)
                    .map(|()| Err(Reason::LateResponse));
            };
            let (piece, has_ended) = match frame {
                // Trailers are discarded.
                Some(Ok(frame)) => (
                    frame.into_data().unwrap_or_default(),
                    self.body.is_end_stream(),
                ),
                Some(Err(_)) => return Poll::Ready(Err(Reason::IncompleteResponse)),
                None => (Bytes::new(), true),
            };
            let version = match self.reader.read(&piece, has_ended, negotiated_version) {
                Progress::Unfinished => continue,
                Progress::Found(version) => Some(version),
                Progress::NotFound => None,
                // Not passed on unread: its revision may be one that is not served.
                Progress::NoBudget => {
                    return Poll::Ready(Err(Reason::Body(BodyError::BudgetExhausted)));
                }
            };
            return Poll::Ready(Ok(NamedVersion { version, has_ended }));
        }
    }

    fn finish(
        self: Box<Self>,
        named: Result<NamedVersion, Reason>,
        served: Revisions,
    ) -> Negotiated<B> {
        let Self {
            opening,
            head,
            body,
            backend_guard,
            reader,
            ..
        } = *self;
        let negotiated = named.and_then(|named| {
            Ok((
                opening.negotiated_revision(named.version, served)?,
                named.has_ended,
            ))
        });
        let (revision, has_ended) = match negotiated {
            Ok(negotiated) => negotiated,
            Err(reason) => {
                return Negotiated::Rejected(Rejection {
                    reason,
                    id: opening.id,
                });
            }
        };
        let Opening {
            reservation, id, ..
        } = opening;
        let body = EndpointBody::initialize(reader.into_kept().into(), body, has_ended);
        let response = Response::from_parts(head, body);
        Negotiated::Accepted(Box::new(Accepted {
            reservation,
            revision,
            id,
            backend_guard,
            response,
        }))
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
