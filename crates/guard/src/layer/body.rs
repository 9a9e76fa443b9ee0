//! [`GuardBody`]: the response body of the guard.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::limit::Permit;

pin_project! {
    /// The response body of the guard: a short text of its own, an empty body, or the unchanged
    /// body of the inner service.
    #[derive(Debug)]
    pub struct GuardBody<B> {
        #[pin]
        state: BodyState<B>,
    }
}

pin_project! {
    #[project = BodyStateProj]
    #[derive(Debug)]
    enum BodyState<B> {
        Full { data: Option<Bytes> },
        Empty,
        // The body is dropped first: a service counts a request that continues before the permit is
        // released.
        Inner { #[pin] body: B, permit: Option<Permit> },
    }
}

impl<B> GuardBody<B> {
    /// A text of the guard.
    pub(super) fn full(data: Bytes) -> Self {
        Self {
            state: BodyState::Full { data: Some(data) },
        }
    }

    /// No content.
    pub(super) fn empty() -> Self {
        Self {
            state: BodyState::Empty,
        }
    }

    /// Wraps the body of the inner service. The permit is released when the body ends or is
    /// dropped.
    pub(super) fn inner(body: B, permit: Option<Permit>) -> Self {
        Self {
            state: BodyState::Inner { body, permit },
        }
    }
}

impl<B: Body<Data = Bytes>> Body for GuardBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().state.project() {
            BodyStateProj::Full { data } => {
                Poll::Ready(data.take().map(|data| Ok(Frame::data(data))))
            }
            BodyStateProj::Empty => Poll::Ready(None),
            BodyStateProj::Inner { body, permit } => {
                let frame = ready!(body.poll_frame(cx));
                if !matches!(frame, Some(Ok(_))) {
                    drop(permit.take());
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            BodyState::Full { data } => data.is_none(),
            BodyState::Empty => true,
            BodyState::Inner { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            BodyState::Full { data } => {
                SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64))
            }
            BodyState::Empty => SizeHint::with_exact(0),
            BodyState::Inner { body, .. } => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    /// The end and the size of a body are reported correctly, because servers frame the response by
    /// them.
    #[tokio::test]
    async fn a_body_ends_exactly_after_its_data() {
        for mut body in [
            GuardBody::full("text".into()),
            GuardBody::inner(Full::from("text"), None),
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
        let empty = GuardBody::<Full<Bytes>>::empty();
        assert!(empty.is_end_stream());
        assert_eq!(empty.size_hint().exact(), Some(0));
    }
}
