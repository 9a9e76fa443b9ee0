//! The answer to `initialize`, held back until it says which revision the session follows.

use std::pin::Pin;

use bytes::Bytes;
use http::{
    HeaderMap, Response,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    response::Parts,
};
use http_body::Body;
use portcullis_mcp::{EraError, Revision, Revisions, sse};
use portcullis_session::Reservation;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    EndpointBody, Unrecorded,
    budget::Share,
    respond::{Refusal, Refused},
};

/// How many bytes of an answer are held back. An answer to `initialize` has a few kilobytes.
const MAX_HELD: usize = 256 << 10;

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
    unrecorded: Option<Unrecorded>,
    read: Read,
    held: Vec<u8>,
    share: Share,
}

/// How the negotiation ended.
pub(crate) enum Negotiated<B> {
    /// The session begins.
    Session(Accepted<B>),
    /// The session does not begin; the inner service's session ends.
    Refused(Refused),
}

/// An answer that opens a session.
pub(crate) struct Accepted<B> {
    pub(crate) room: Reservation,
    /// What the session follows, as far as that is known.
    pub(crate) version: Option<Revision>,
    pub(crate) unrecorded: Option<Unrecorded>,
    pub(crate) response: Response<EndpointBody<B>>,
}

enum Read {
    Json,
    Events(sse::Decoder),
}

/// What an answer says of the version.
enum Found {
    Version(String),
    /// Nothing that can be read within the limits.
    Nothing,
}

impl Opening {
    /// The version that counts where the answer does not say.
    pub(crate) fn asked(&self) -> Option<Revision> {
        self.requested.as_deref().and_then(Revision::parse)
    }
}

impl<B: Body<Data = Bytes>> Negotiation<B> {
    /// Begins where the head of the answer ends.
    ///
    /// # Errors
    /// The opened session, when the answer is in no form that can be read. It then follows what the client asked for.
    pub(crate) fn begin(opening: Opening, response: Response<B>, share: Share) -> Result<Box<Self>, Box<Accepted<B>>> {
        let (mut head, body) = response.into_parts();
        let unrecorded = head.extensions.remove::<Unrecorded>();
        match Read::of(&head.headers) {
            Some(read) => {
                let body = Box::pin(body);
                Ok(Box::new(Self { opening, head, body, unrecorded, read, held: Vec::new(), share }))
            }
            None => {
                let (version, room) = (opening.asked(), opening.room);
                let response = Response::from_parts(head, EndpointBody::inner(body, None));
                Err(Box::new(Accepted { room, version, unrecorded, response }))
            }
        }
    }

    /// The body of the answer.
    pub(crate) fn body(&mut self) -> Pin<&mut B> {
        self.body.as_mut()
    }

    /// Takes the next piece of the body; `last` tells that nothing follows. Whether there is nothing more to wait for.
    pub(crate) fn take(
        self: Box<Self>,
        piece: &[u8],
        last: bool,
        served: Revisions,
    ) -> Result<Negotiated<B>, Box<Self>> {
        let mut this = self;
        let fits = this.held.len() + piece.len() <= MAX_HELD && this.share.grow(piece.len());
        this.held.extend_from_slice(piece);
        let found = match &mut this.read {
            _ if !fits => Some(Found::Nothing),
            Read::Json => last.then(|| version(&this.held).map_or(Found::Nothing, Found::Version)),
            Read::Events(decoder) => match decoder.push(piece) {
                Ok(events) => events.iter().find_map(|event| version(event.data.as_bytes())).map(Found::Version),
                Err(_) => Some(Found::Nothing),
            },
        };
        match found.or(last.then_some(Found::Nothing)) {
            Some(found) => Ok(this.settle(found, last, served)),
            None => Err(this),
        }
    }

    /// The body of the answer broke off.
    pub(crate) fn broken(self: Box<Self>) -> Refused {
        Refused { refusal: Refusal::AnswerBroken, id: self.opening.id }
    }

    fn settle(self: Box<Self>, found: Found, ended: bool, served: Revisions) -> Negotiated<B> {
        let Self { opening, head, body, unrecorded, held, .. } = *self;
        let version = match found {
            Found::Nothing => opening.asked(),
            Found::Version(negotiated) => {
                let known = Revision::parse(&negotiated).filter(|revision| served.contains(*revision));
                if known.is_none_or(Revision::is_modern) {
                    let requested = opening.requested.as_deref().unwrap_or_default();
                    let refusal = Refusal::Era(EraError::negotiated(&negotiated, requested, served));
                    return Negotiated::Refused(Refused { refusal, id: opening.id });
                }
                known
            }
        };
        let response = Response::from_parts(head, EndpointBody::held_back(held.into(), body, ended));
        Negotiated::Session(Accepted { room: opening.room, version, unrecorded, response })
    }
}

impl Read {
    /// How an answer with these headers is read; `None` for one in another form.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        if headers.contains_key(CONTENT_ENCODING) {
            None
        } else if media_type.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else if media_type.eq_ignore_ascii_case("text/event-stream") {
            Some(Self::Events(sse::Decoder::new(MAX_HELD)))
        } else {
            None
        }
    }
}

/// The one member of the answer that matters.
#[derive(Deserialize)]
struct Answer {
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    protocol_version: String,
}

/// The version in a message, if it is the answer.
fn version(message: &[u8]) -> Option<String> {
    let answer: Answer = serde_json::from_slice(message).ok()?;
    Some(answer.result.protocol_version)
}
