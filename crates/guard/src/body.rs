use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::limit::Permit;

pin_project! {
    /// The body of every answer that leaves the guard: a short text of its own, nothing, or the protected
    /// service's body, untouched. No box in either case.
    #[derive(Debug)]
    pub struct GuardBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    #[derive(Debug)]
    enum Kind<B> {
        Full { data: Option<Bytes> },
        Empty,
        Inner { #[pin] body: B, permit: Option<Permit> },
    }
}

impl<B> GuardBody<B> {
    pub(crate) fn full(data: Bytes) -> Self {
        Self { kind: Kind::Full { data: Some(data) } }
    }

    pub(crate) fn empty() -> Self {
        Self { kind: Kind::Empty }
    }

    /// The protected service's body. The permit ends with it, or when it is dropped.
    pub(crate) fn inner(body: B, permit: Option<Permit>) -> Self {
        Self { kind: Kind::Inner { body, permit } }
    }
}

impl<B: Body<Data = Bytes>> Body for GuardBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProj::Full { data } => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            KindProj::Empty => Poll::Ready(None),
            KindProj::Inner { body, permit } => {
                let frame = ready!(body.poll_frame(cx));
                if !matches!(frame, Some(Ok(_))) {
                    drop(permit.take());
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Full { data } => data.is_none(),
            Kind::Empty => true,
            Kind::Inner { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full { data } => SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64)),
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Inner { body, .. } => body.size_hint(),
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
        for mut body in [GuardBody::full("text".into()), GuardBody::inner(Full::from("text"), None)] {
            assert_eq!((body.is_end_stream(), body.size_hint().exact()), (false, Some(4)));
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "text");
            assert!(body.is_end_stream() && body.frame().await.is_none());
        }
        let empty = GuardBody::<Full<Bytes>>::empty();
        assert_eq!((empty.is_end_stream(), empty.size_hint().exact()), (true, Some(0)));
    }
}
