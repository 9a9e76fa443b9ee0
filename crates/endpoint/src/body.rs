use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use portcullis_session::InUse;

use crate::negotiated::Negotiated;

/// The body of an admitted request: exactly the bytes that were judged, or nothing.
#[derive(Clone, Debug, Default)]
pub struct AdmittedBody(Bytes);

impl AdmittedBody {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl Body for AdmittedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = std::mem::take(&mut self.0);
        Poll::Ready(if data.is_empty() { None } else { Some(Ok(Frame::data(data))) })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

pin_project! {
    /// The body of every answer that leaves the endpoint: a short text of its own, nothing, or the inner service's
    /// body, untouched. No box in either case.
    ///
    /// The session that an answer belongs to does not go idle while its body lives: a client that only listens to a
    /// stream uses the session.
    #[derive(Debug)]
    pub struct EndpointBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    #[derive(Debug)]
    enum Kind<B> {
        Own { data: Bytes },
        Inner { #[pin] body: B, in_use: Option<InUse>, negotiated: Option<Box<Negotiated>> },
    }
}

impl<B> EndpointBody<B> {
    pub(crate) fn own(data: Bytes) -> Self {
        Self { kind: Kind::Own { data } }
    }

    pub(crate) fn inner(body: B, in_use: Option<InUse>) -> Self {
        Self { kind: Kind::Inner { body, in_use, negotiated: None } }
    }

    /// The answer to an `initialize`, read along.
    pub(crate) fn opening(body: B, negotiated: Box<Negotiated>) -> Self {
        Self { kind: Kind::Inner { body, in_use: None, negotiated: Some(negotiated) } }
    }
}

impl<B: Body<Data = Bytes>> Body for EndpointBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProj::Own { data } if data.is_empty() => Poll::Ready(None),
            KindProj::Own { data } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            KindProj::Inner { mut body, negotiated, .. } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                if let Some(reader) = negotiated {
                    let piece = frame.iter().flatten().find_map(Frame::data_ref);
                    let last = frame.is_none() || body.is_end_stream();
                    if reader.read(piece.map(|piece| &**piece).unwrap_or_default(), last) {
                        *negotiated = None;
                    }
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Own { data } => data.is_empty(),
            Kind::Inner { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own { data } => SizeHint::with_exact(data.len() as u64),
            Kind::Inner { body, .. } => body.size_hint(),
        }
    }
}
