//! [`EndpointBody`]: the body of the endpoint's responses.

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use portcullis_session::InUse;

use super::upstream_revisions::RevisionsReader;
use crate::stream::{StreamGuard, StreamStop};

pin_project! {
    /// The body of the endpoint's response: its own text, or the unchanged body of the inner
    /// service.
    ///
    /// Only the response to `initialize` is boxed. The session of a response is in use until its
    /// body is dropped. An event stream ends with its authorization, after a complete event; see
    /// [`StreamRegistry`](crate::StreamRegistry).
    #[derive(Debug)]
    pub struct EndpointBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[project = SourceProj]
    #[derive(Debug)]
    enum Source<B> {
        Own { data: Bytes },
        Inner {
            #[pin]
            body: B,
            in_use: Option<InUse>,
            revisions: Option<Box<RevisionsReader>>,
            stream: Option<StreamGuard>,
        },
        Initialize { held: Bytes, rest: Option<Pin<Box<B>>>, in_use: Option<InUse>, stream: Option<StreamGuard> },
    }
}

/// The error of a response body.
#[derive(Debug)]
#[non_exhaustive]
pub enum EndpointBodyError<E> {
    /// The inner service's body failed.
    Inner(E),
    /// The authorization of an event stream has ended, and the current event was not completed
    /// within 10 s.
    IncompleteEvent,
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<EndpointBodyError<E>>
    for Box<dyn Error + Send + Sync>
{
    fn from(error: EndpointBodyError<E>) -> Self {
        match error {
            EndpointBodyError::Inner(error) => error.into(),
            EndpointBodyError::IncompleteEvent => {
                "the authorization of an event stream ended within an event".into()
            }
        }
    }
}

impl<B> EndpointBody<B> {
    /// Returns a body of the endpoint's own.
    pub(crate) fn own(data: Bytes) -> Self {
        Self {
            source: Source::Own { data },
        }
    }

    /// Returns the body of the inner service's response. It keeps a session in use, and a stream
    /// registered, until it is dropped.
    pub(crate) fn inner(body: B, in_use: Option<InUse>, stream: Option<StreamGuard>) -> Self {
        Self {
            source: Source::Inner {
                body,
                in_use,
                revisions: None,
                stream,
            },
        }
    }

    /// Returns a body from which a reader takes the supported revisions.
    pub(crate) fn with_reader(
        body: B,
        revisions: Option<Box<RevisionsReader>>,
        stream: Option<StreamGuard>,
    ) -> Self {
        Self {
            source: Source::Inner {
                body,
                in_use: None,
                revisions,
                stream,
            },
        }
    }

    /// Returns a body that consists of the held bytes and, unless it has ended, the rest.
    pub(crate) fn initialize(held: Bytes, rest: Pin<Box<B>>, has_ended: bool) -> Self {
        Self {
            source: Source::Initialize {
                held,
                rest: (!has_ended).then_some(rest),
                in_use: None,
                stream: None,
            },
        }
    }

    /// Adds the session and the stream of the response.
    pub(crate) fn attach(&mut self, session: Option<InUse>, guard: Option<StreamGuard>) {
        match &mut self.source {
            Source::Inner { in_use, stream, .. } | Source::Initialize { in_use, stream, .. } => {
                (*in_use, *stream) = (session, guard);
            }
            Source::Own { .. } => {}
        }
    }
}

impl<B: Body<Data = Bytes>> Body for EndpointBody<B> {
    type Data = Bytes;
    type Error = EndpointBodyError<B::Error>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut source = self.project().source;
        let polled = match source.as_mut().project() {
            SourceProj::Own { data } if data.is_empty() => return Poll::Ready(None),
            SourceProj::Own { data } => {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::take(data)))));
            }
            SourceProj::Inner {
                mut body,
                revisions,
                stream,
                ..
            } => {
                let polled = poll_stream(stream, cx, |cx| body.as_mut().poll_frame(cx));
                if let (Polled::Frame(frame), Some(reader)) = (&polled, revisions.as_mut()) {
                    let piece = frame.iter().flatten().find_map(Frame::data_ref);
                    let is_last = frame.is_none() || body.is_end_stream();
                    if reader.read(piece.map(|piece| &**piece).unwrap_or_default(), is_last) {
                        *revisions = None;
                    }
                }
                polled
            }
            SourceProj::Initialize {
                held, rest, stream, ..
            } => poll_stream(stream, cx, |cx| match rest {
                _ if !held.is_empty() => Poll::Ready(Some(Ok(Frame::data(std::mem::take(held))))),
                Some(rest) => rest.as_mut().poll_frame(cx),
                None => Poll::Ready(None),
            }),
        };
        let stop = match polled {
            Polled::Frame(frame) => {
                return Poll::Ready(frame.map(|frame| frame.map_err(EndpointBodyError::Inner)));
            }
            Polled::Pending => return Poll::Pending,
            Polled::Stop(stop) => stop,
        };
        let last = source.as_mut().project().finish_stream(stop);
        // Dropping the inner body also ends the upstream's stream.
        source.set(Source::Own { data: Bytes::new() });
        Poll::Ready(match stop {
            StreamStop::WithinEvent => Some(Err(EndpointBodyError::IncompleteEvent)),
            StreamStop::AfterEvent if last.is_empty() => None,
            StreamStop::AfterEvent => Some(Ok(Frame::data(last))),
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Own { data } => data.is_empty(),
            Source::Inner { body, .. } => body.is_end_stream(),
            Source::Initialize { held, rest, .. } => {
                held.is_empty() && rest.as_ref().is_none_or(|rest| rest.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Own { data } => SizeHint::with_exact(data.len() as u64),
            Source::Inner { body, .. } => body.size_hint(),
            Source::Initialize { held, rest, .. } => {
                let held = held.len() as u64;
                let rest = rest
                    .as_ref()
                    .map_or_else(|| SizeHint::with_exact(0), |rest| rest.size_hint());
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

impl<B> SourceProj<'_, B> {
    /// Stops the stream. Returns its last event.
    fn finish_stream(self, stop: StreamStop) -> Bytes {
        match self {
            Self::Inner {
                stream: Some(stream),
                ..
            }
            | Self::Initialize {
                stream: Some(stream),
                ..
            } => stream.finish(stop),
            _ => Bytes::new(),
        }
    }
}

/// The result of polling a body that may be an event stream.
enum Polled<E> {
    Frame(Option<Result<Frame<Bytes>, E>>),
    Pending,
    /// The stream must end.
    Stop(StreamStop),
}

/// Polls for the next frame, unless the stream must end. A stream that is silent for long yields a
/// comment.
fn poll_stream<E>(
    stream: &mut Option<StreamGuard>,
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>>,
) -> Polled<E> {
    if let Some(stop) = stream.as_ref().and_then(StreamGuard::stop) {
        return Polled::Stop(stop);
    }
    let Poll::Ready(frame) = poll(cx) else {
        let Some(waiting) = stream else {
            return Polled::Pending;
        };
        waiting.set_waker(cx.waker());
        if let Some(stop) = waiting.stop() {
            return Polled::Stop(stop);
        }
        let comment = waiting
            .due_comment()
            .map(|comment| Some(Ok(Frame::data(comment))));
        return comment.map_or(Polled::Pending, Polled::Frame);
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

    /// A body ends when it was read: servers send nothing of an ended body and frame others by
    /// their size.
    #[tokio::test]
    async fn a_body_ends_when_it_was_read() {
        for mut body in [
            EndpointBody::own("text".into()),
            EndpointBody::inner(Full::from("text"), None, None),
        ] {
            assert!(!body.is_end_stream());
            assert_eq!(body.size_hint().exact(), Some(4));
            assert_eq!(
                body.frame().await.unwrap().unwrap().into_data().unwrap(),
                "text"
            );
            assert!(body.is_end_stream());
            assert!(body.frame().await.is_none());
        }
    }

    /// E11: the held bytes come first, then the rest.
    #[tokio::test]
    async fn held_bytes_come_first() {
        for (ended, whole) in [(false, "held rest"), (true, "held ")] {
            let mut body =
                EndpointBody::initialize("held ".into(), Box::pin(Full::from("rest")), ended);
            assert!(!body.is_end_stream());
            assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
            assert_eq!(
                body.frame().await.unwrap().unwrap().into_data().unwrap(),
                "held "
            );
            assert_eq!(body.is_end_stream(), ended);
            assert_eq!(
                body.collect().await.unwrap().to_bytes(),
                whole.strip_prefix("held ").unwrap()
            );
        }
    }
}
