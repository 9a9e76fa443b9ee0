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
    negotiated::Negotiated,
    stream::{End, StreamGuard},
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
    /// body, untouched. No box in either case.
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
        Inner {
            #[pin]
            body: B,
            in_use: Option<InUse>,
            negotiated: Option<Box<Negotiated>>,
            stream: Option<StreamGuard>,
        },
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
        Self { kind: Kind::Inner { body, in_use, negotiated: None, stream } }
    }

    /// The answer to an `initialize`, read along.
    pub(crate) fn opening(body: B, negotiated: Box<Negotiated>, stream: Option<StreamGuard>) -> Self {
        Self { kind: Kind::Inner { body, in_use: None, negotiated: Some(negotiated), stream } }
    }
}

impl<B: Body<Data = Bytes>> Body for EndpointBody<B> {
    type Data = Bytes;
    type Error = EndpointBodyError<B::Error>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut kind = self.project().kind;
        let end = match kind.as_mut().project() {
            KindProj::Own { data } if data.is_empty() => return Poll::Ready(None),
            KindProj::Own { data } => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            KindProj::Inner { body, negotiated, stream, .. } => match poll_inner(body, negotiated, stream, cx) {
                Polled::Frame(frame) => return Poll::Ready(frame.map(|frame| frame.map_err(EndpointBodyError::Inner))),
                Polled::Pending => return Poll::Pending,
                Polled::End(end) => end,
            },
        };
        // The inner body goes, and with it what it costs upstream.
        kind.set(Kind::Own { data: Bytes::new() });
        Poll::Ready((end == End::Incomplete).then_some(Err(EndpointBodyError::IncompleteEvent)))
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

/// What comes of polling the inner body.
enum Polled<E> {
    Frame(Option<Result<Frame<Bytes>, E>>),
    Pending,
    /// The authorization of the stream has ended.
    End(End),
}

fn poll_inner<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    negotiated: &mut Option<Box<Negotiated>>,
    stream: &mut Option<StreamGuard>,
    cx: &mut Context<'_>,
) -> Polled<B::Error> {
    let is_over = |stream: &Option<StreamGuard>| stream.as_ref().and_then(StreamGuard::end);
    if let Some(end) = is_over(stream) {
        return Polled::End(end);
    }
    let Poll::Ready(mut frame) = body.as_mut().poll_frame(cx) else {
        let Some(waiting) = stream else { return Polled::Pending };
        waiting.wake_later(cx.waker());
        return is_over(stream).map_or(Polled::Pending, Polled::End);
    };
    if let Some(stream) = stream {
        frame = frame.map(|frame| frame.map(|frame| stream.pass(frame)));
    }
    if let Some(reader) = negotiated {
        let piece = frame.iter().flatten().find_map(Frame::data_ref);
        let last = frame.is_none() || body.is_end_stream();
        if reader.read(piece.map(|piece| &**piece).unwrap_or_default(), last) {
            *negotiated = None;
        }
    }
    Polled::Frame(frame)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
    use http_body_util::{BodyExt as _, Full};
    use portcullis_metadata::{ResourceUri, Scopes};
    use portcullis_session::{Owner, SessionKey, SessionSettings, SessionStore};
    use portcullis_testkit::ManualClock;

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

    /// F6: the version is known with the last piece, behind which a server does not ask for more.
    #[tokio::test]
    async fn the_version_is_known_with_the_last_piece() {
        let settings = SessionSettings::new(SessionKey::new(0, [7; 16]));
        let store = SessionStore::new(settings, Arc::new(ManualClock::new()), Arc::new(()));
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        let session = store.reserve(&resource, Owner::Nobody, &Scopes::empty()).unwrap().open(Box::default(), None);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let reader = Negotiated::begin(Arc::clone(&session), Some("2025-11-25"), &headers).unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#;
        let mut body = EndpointBody::opening(Full::from(answer), reader, None);
        body.frame().await.unwrap().unwrap();
        assert_eq!(session.protocol_version(), Some("2025-06-18"));
    }
}
