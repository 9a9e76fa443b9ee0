//! A request's body as it comes from the socket: whether it was read to its end, and a bound on its pauses.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use super::linger::Unread;

/// How long a client may pause inside a body.
const MAX_PAUSE: Duration = Duration::from_secs(30);

pin_project! {
    /// A request's body.
    pub(crate) struct RequestBody<B> {
        #[pin]
        body: B,
        unread: Option<Unread>,
        pause: Option<Pin<Box<Sleep>>>,
    }
}

impl<B: Body> RequestBody<B> {
    /// `unread` is given on HTTP/1.1 alone: there the body's rest stands between two requests.
    pub(super) fn new(body: B, unread: Option<Unread>) -> Self {
        if let Some(unread) = &unread {
            unread.set(!body.is_end_stream());
        }
        Self { body, unread, pause: None }
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut this = self.project();
        let Poll::Ready(frame) = this.body.as_mut().poll_frame(cx) else {
            // The timer is made only for bodies that pause at all.
            ready!(this.pause.get_or_insert_with(|| Box::pin(sleep(MAX_PAUSE))).as_mut().poll(cx));
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        *this.pause = None;
        if (frame.is_none() || this.body.is_end_stream())
            && let Some(unread) = this.unread
        {
            unread.set(false);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt as _, Full};

    #[tokio::test]
    async fn a_body_is_unread_until_its_end() {
        let unread = Unread::default();
        let body = RequestBody::new(Full::from("rest"), Some(unread.clone()));
        assert!(unread.is_set());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "rest");
        assert!(!unread.is_set());
    }

    struct Stalled;

    impl Body for Stalled {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            Poll::Pending
        }
    }

    /// F4: a client that stops inside a body does not hold its request for ever.
    #[tokio::test(start_paused = true)]
    async fn a_pause_is_bounded() {
        let error = RequestBody::new(Stalled, None).collect().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
