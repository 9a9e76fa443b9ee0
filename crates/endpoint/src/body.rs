//! The bodies that go into the inner service and come out of the endpoint.

use std::{
    convert::Infallible,
    error::Error,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use portcullis_session::InUse;

use crate::{
    stream::{End, StreamGuard},
    upstream_revisions::Learning,
};

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
    /// stream uses the session. An event stream ends when its authorization does, behind a complete event; see
    /// [`StreamRegistry`](crate::StreamRegistry).
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
        Inner { #[pin] body: B, in_use: Option<InUse>, learning: Option<Box<Learning>>, stream: Option<StreamGuard> },
        HeldBack { held: Bytes, rest: Option<Pin<Box<B>>>, in_use: Option<InUse>, stream: Option<StreamGuard> },
    }
}

/// Why an answer's body fails.
#[derive(Debug)]
#[non_exhaustive]
pub enum EndpointBodyError<E> {
    /// The inner service's body failed.
    Inner(E),
    /// The authorization of an event stream has ended, and the event that it was in did not end within 10 s.
    IncompleteEvent,
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<EndpointBodyError<E>> for Box<dyn Error + Send + Sync> {
    fn from(error: EndpointBodyError<E>) -> Self {
        match error {
            EndpointBodyError::Inner(error) => error.into(),
            EndpointBodyError::IncompleteEvent => "the authorization of an event stream ended within an event".into(),
        }
    }
}

impl<B> EndpointBody<B> {
    pub(crate) fn own(data: Bytes) -> Self {
        Self { kind: Kind::Own { data } }
    }

    pub(crate) fn inner(body: B, in_use: Option<InUse>, stream: Option<StreamGuard>) -> Self {
        Self { kind: Kind::Inner { body, in_use, learning: None, stream } }
    }

    /// A body that is read while it passes.
    pub(crate) fn read_along(body: B, learning: Option<Box<Learning>>, stream: Option<StreamGuard>) -> Self {
        Self { kind: Kind::Inner { body, in_use: None, learning, stream } }
    }

    /// What was held back of a body, and the rest of it unless it has ended.
    pub(crate) fn held_back(held: Bytes, rest: Pin<Box<B>>, ended: bool) -> Self {
        Self { kind: Kind::HeldBack { held, rest: (!ended).then_some(rest), in_use: None, stream: None } }
    }

    /// Keeps this session in use until the inner body has ended, and ends a stream with its authorization.
    pub(crate) fn attach(&mut self, session: InUse, guard: Option<StreamGuard>) {
        match &mut self.kind {
            Kind::Inner { in_use, stream, .. } | Kind::HeldBack { in_use, stream, .. } => {
                (*in_use, *stream) = (Some(session), guard);
            }
            Kind::Own { .. } => {}
        }
    }
}

impl<B: Body<Data = Bytes>> Body for EndpointBody<B> {
    type Data = Bytes;
    type Error = EndpointBodyError<B::Error>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut kind = self.project().kind;
        let polled = match kind.as_mut().project() {
            KindProj::Own { data } if data.is_empty() => return Poll::Ready(None),
            KindProj::Own { data } => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            KindProj::Inner { mut body, learning, stream, .. } => {
                let polled = poll_stream(stream, cx, |cx| body.as_mut().poll_frame(cx));
                if let (Polled::Frame(frame), Some(reader)) = (&polled, learning.as_mut()) {
                    let piece = frame.iter().flatten().find_map(Frame::data_ref);
                    let last = frame.is_none() || body.is_end_stream();
                    if reader.take(piece.map(|piece| &**piece).unwrap_or_default(), last) {
                        *learning = None;
                    }
                }
                polled
            }
            KindProj::HeldBack { held, rest, stream, .. } => poll_stream(stream, cx, |cx| match rest {
                _ if !held.is_empty() => Poll::Ready(Some(Ok(Frame::data(std::mem::take(held))))),
                Some(rest) => rest.as_mut().poll_frame(cx),
                None => Poll::Ready(None),
            }),
        };
        let end = match polled {
            Polled::Frame(frame) => return Poll::Ready(frame.map(|frame| frame.map_err(EndpointBodyError::Inner))),
            Polled::Pending => return Poll::Pending,
            Polled::End(end) => end,
        };
        // The inner body goes, and with it what it costs upstream.
        kind.set(Kind::Own { data: Bytes::new() });
        Poll::Ready((end == End::Incomplete).then_some(Err(EndpointBodyError::IncompleteEvent)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Own { data } => data.is_empty(),
            Kind::Inner { body, .. } => body.is_end_stream(),
            Kind::HeldBack { held, rest, .. } => {
                held.is_empty() && rest.as_ref().is_none_or(|rest| rest.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own { data } => SizeHint::with_exact(data.len() as u64),
            Kind::Inner { body, .. } => body.size_hint(),
            Kind::HeldBack { held, rest, .. } => {
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

/// The result of polling a body that may be an event stream.
enum Polled<E> {
    Frame(Option<Result<Frame<Bytes>, E>>),
    Pending,
    /// The authorization of the stream has ended.
    End(End),
}

/// Polls for the next frame, unless the stream's authorization has ended.
fn poll_stream<E>(
    stream: &mut Option<StreamGuard>,
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>>,
) -> Polled<E> {
    let is_over = |stream: &Option<StreamGuard>| stream.as_ref().and_then(StreamGuard::end);
    if let Some(end) = is_over(stream) {
        return Polled::End(end);
    }
    let Poll::Ready(frame) = poll(cx) else {
        let Some(waiting) = stream else { return Polled::Pending };
        waiting.wake_later(cx.waker());
        return is_over(stream).map_or(Polled::Pending, Polled::End);
    };
    match stream {
        Some(stream) => Polled::Frame(frame.map(|frame| frame.map(|frame| stream.pass(frame)))),
        None => Polled::Frame(frame),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    /// Servers send nothing of a body that is at its end, and frame the others by their size.
    #[tokio::test]
    async fn a_body_ends_when_it_was_read_and_no_sooner() {
        for mut body in [EndpointBody::own("text".into()), EndpointBody::inner(Full::from("text"), None, None)] {
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
