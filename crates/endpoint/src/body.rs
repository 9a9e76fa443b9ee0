//! The bodies that go into the inner service and come out of the endpoint.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use portcullis_session::InUse;

use crate::upstream_revisions::Learning;

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
    /// body, untouched. No box but for the answer to `initialize`, whose first part was held back.
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
        Inner { #[pin] body: B, in_use: Option<InUse>, learning: Option<Box<Learning>> },
        HeldBack { held: Bytes, rest: Option<Pin<Box<B>>> },
    }
}

impl<B> EndpointBody<B> {
    pub(crate) fn own(data: Bytes) -> Self {
        Self { kind: Kind::Own { data } }
    }

    pub(crate) fn inner(body: B, in_use: Option<InUse>) -> Self {
        Self { kind: Kind::Inner { body, in_use, learning: None } }
    }

    /// A body that is read while it passes.
    pub(crate) fn read_along(body: B, learning: Option<Box<Learning>>) -> Self {
        Self { kind: Kind::Inner { body, in_use: None, learning } }
    }

    /// What was held back of a body, and the rest of it unless it has ended.
    pub(crate) fn held_back(held: Bytes, rest: Pin<Box<B>>, ended: bool) -> Self {
        Self { kind: Kind::HeldBack { held, rest: (!ended).then_some(rest) } }
    }
}

impl<B: Body<Data = Bytes>> Body for EndpointBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProj::Own { data } if data.is_empty() => Poll::Ready(None),
            KindProj::Own { data } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            KindProj::Inner { mut body, learning, .. } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                if let Some(reader) = learning {
                    let piece = frame.iter().flatten().find_map(Frame::data_ref);
                    let last = frame.is_none() || body.is_end_stream();
                    if reader.take(piece.map(|piece| &**piece).unwrap_or_default(), last) {
                        *learning = None;
                    }
                }
                Poll::Ready(frame)
            }
            KindProj::HeldBack { held, .. } if !held.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(held)))))
            }
            KindProj::HeldBack { rest, .. } => {
                rest.as_mut().map_or(Poll::Ready(None), |rest| rest.as_mut().poll_frame(cx))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Own { data } => data.is_empty(),
            Kind::Inner { body, .. } => body.is_end_stream(),
            Kind::HeldBack { held, rest } => held.is_empty() && rest.as_ref().is_none_or(|rest| rest.is_end_stream()),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own { data } => SizeHint::with_exact(data.len() as u64),
            Kind::Inner { body, .. } => body.size_hint(),
            Kind::HeldBack { held, rest } => {
                let held = held.len() as u64;
                let rest = rest.as_ref().map_or_else(|| SizeHint::with_exact(0), |rest| rest.size_hint());
                let mut hint = SizeHint::new();
                hint.set_lower(rest.lower().saturating_add(held));
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper.saturating_add(held));
                }
                hint
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    /// Servers send nothing of a body that is at its end, and frame the others by their size.
    #[tokio::test]
    async fn a_body_ends_when_it_was_read_and_no_sooner() {
        for mut body in [EndpointBody::own("text".into()), EndpointBody::inner(Full::from("text"), None)] {
            assert_eq!((body.is_end_stream(), body.size_hint().exact()), (false, Some(4)));
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "text");
            assert!(body.is_end_stream() && body.frame().await.is_none());
        }
    }

    /// E11: what was held back comes first, and the rest as it comes.
    #[tokio::test]
    async fn what_was_held_back_comes_first() {
        for (ended, whole) in [(false, "held rest"), (true, "held ")] {
            let mut body = EndpointBody::held_back("held ".into(), Box::pin(Full::from("rest")), ended);
            assert_eq!((body.is_end_stream(), body.size_hint().exact()), (false, Some(whole.len() as u64)));
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "held ");
            assert_eq!(body.is_end_stream(), ended);
            assert_eq!(body.collect().await.unwrap().to_bytes(), whole.strip_prefix("held ").unwrap());
        }
    }
}
