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
    pub(crate) fn opening(body: B, in_use: Option<InUse>, negotiated: Box<Negotiated>) -> Self {
        Self { kind: Kind::Inner { body, in_use, negotiated: Some(negotiated) } }
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
        for mut body in [EndpointBody::own("text".into()), EndpointBody::inner(Full::from("text"), None)] {
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
        let session =
            store.reserve(&resource, Owner::Nobody, &Scopes::empty()).unwrap().open(Box::default(), None).unwrap();
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let reader = Negotiated::begin(Arc::clone(session.session()), Some("2025-11-25"), &headers).unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#;
        let mut body = EndpointBody::opening(Full::from(answer), None, reader);
        body.frame().await.unwrap().unwrap();
        assert_eq!(session.protocol_version(), Some("2025-06-18"));
    }
}
