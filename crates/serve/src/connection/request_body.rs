//! A request body with timeouts, which records whether it was read to its end.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use super::lingering_close::UnreadBytes;

#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyTimeouts {
    /// The longest pause.
    pub(crate) pause: Duration,
    /// The longest duration of the whole body, counted from its first pause.
    pub(crate) whole: Duration,
}

pin_project! {
    /// A request's body.
    pub(crate) struct RequestBody<B> {
        #[pin]
        body: Either<B, Full<Bytes>>,
        // `None` after the end of the body.
        unread: Option<UnreadBytes>,
        times: BodyTimeouts,
        pause: Option<Pin<Box<Sleep>>>,
        deadline: Option<Instant>,
    }

    impl<B> PinnedDrop for RequestBody<B> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(unread) = this.project().unread {
                unread.set_abandoned(true);
            }
        }
    }
}

impl<B: Body> RequestBody<B> {
    /// Wraps a body. `unread` is set on HTTP/1.1 only, where the rest of a body precedes the next
    /// request.
    pub(crate) fn new(body: B, unread: Option<UnreadBytes>, times: BodyTimeouts) -> Self {
        let is_empty = body.is_end_stream();
        if let Some(unread) = &unread {
            unread.set(!is_empty);
            unread.set_abandoned(false);
        }
        Self {
            body: Either::Left(body),
            unread: unread.filter(|_| !is_empty),
            times,
            pause: None,
            deadline: None,
        }
    }

    /// Wraps a body that has arrived. It never waits.
    pub(crate) fn complete(body: Bytes) -> Self {
        let times = BodyTimeouts {
            pause: Duration::MAX,
            whole: Duration::MAX,
        };
        Self {
            body: Either::Right(Full::new(body)),
            unread: None,
            times,
            pause: None,
            deadline: None,
        }
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut this = self.project();
        let Poll::Ready(frame) = this.body.as_mut().poll_frame(cx) else {
            // Only bodies that pause need a timer.
            let now = Instant::now();
            let deadline = *this.deadline.get_or_insert(now + this.times.whole);
            let pause = this
                .pause
                .get_or_insert_with(|| Box::pin(sleep_until(deadline.min(now + this.times.pause))));
            ready!(pause.as_mut().poll(cx));
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        *this.pause = None;
        if (frame.is_none() || this.body.is_end_stream())
            && let Some(unread) = this.unread.take()
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
    use http_body_util::BodyExt as _;

    const TIMES: BodyTimeouts = BodyTimeouts {
        pause: Duration::from_secs(30),
        whole: Duration::from_secs(300),
    };

    #[tokio::test]
    async fn a_body_is_unread_until_its_end() {
        let unread = UnreadBytes::default();
        let body = RequestBody::new(Full::from("rest"), Some(unread.clone()), TIMES);
        assert!(unread.is_set());
        assert_eq!(body.collect().await.unwrap().to_bytes(), "rest");
        assert!(!unread.is_set());
    }

    struct Stalled;

    impl Body for Stalled {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            Poll::Pending
        }
    }

    /// A body that yields a byte at every second poll.
    struct Drip(bool);

    impl Body for Drip {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            self.0 = !self.0;
            if self.0 {
                let waker = cx.waker().clone();
                tokio::spawn(async move {
                    tokio::time::sleep(TIMES.pause / 2).await;
                    waker.wake();
                });
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    /// F4: the whole body has a time limit, even if the client never pauses for long.
    #[tokio::test(start_paused = true)]
    async fn the_duration_is_bounded() {
        let started = Instant::now();
        let error = RequestBody::new(Drip(false), None, TIMES)
            .collect()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= TIMES.whole, "{:?}", started.elapsed());
        assert!(
            started.elapsed() <= TIMES.whole + TIMES.pause,
            "{:?}",
            started.elapsed()
        );
    }

    /// F4: a pause within the body has a time limit.
    #[tokio::test(start_paused = true)]
    async fn a_pause_is_bounded() {
        let started = Instant::now();
        let error = RequestBody::new(Stalled, None, TIMES)
            .collect()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), TIMES.pause);
    }
}
