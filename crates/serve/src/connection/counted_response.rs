//! A response whose request counts as in progress until the end of its body.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderValue, Response, header::CONNECTION};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{activity::InFlight, bounded_frames::BoundedFrames};

pin_project! {
    /// A response future whose request counts as in progress until the end of the body. On a
    /// connection that is being closed it never resolves.
    pub(crate) struct CountedResponse<F> {
        // `None` if the connection is being closed, and after completion.
        in_flight: Option<InFlight>,
        #[pin]
        response: Option<F>,
        asks_to_close: bool,
    }
}

impl<F> CountedResponse<F> {
    /// `asks_to_close` adds `Connection: close` to the response, which is for HTTP/1.1 only.
    pub(crate) fn new(response: F, in_flight: InFlight, asks_to_close: bool) -> Self {
        Self {
            in_flight: Some(in_flight),
            response: Some(response),
            asks_to_close,
        }
    }

    /// Returns the future of a request on a connection that is being closed.
    pub(crate) fn never() -> Self {
        Self {
            in_flight: None,
            response: None,
            asks_to_close: false,
        }
    }
}

impl<F, B> Future for CountedResponse<F>
where
    F: Future<Output = Response<B>>,
{
    type Output = Result<Response<CountedBody<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(response) = this.response.as_pin_mut() else {
            return Poll::Pending;
        };
        let mut response = ready!(response.poll(cx));
        let Some(in_flight) = this.in_flight.take() else {
            return Poll::Pending;
        };
        if *this.asks_to_close {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response.map(|body| CountedBody::new(body, in_flight))))
    }
}

pin_project! {
    /// A response body whose request counts as in progress, and as blocked while the transport does
    /// not request the next part. Yields parts of bounded size, so that a client that reads slowly
    /// makes progress within a large frame.
    #[derive(Debug)]
    pub(crate) struct CountedBody<B> {
        #[pin]
        body: BoundedFrames<B>,
        is_polled: bool,
        in_flight: InFlight,
    }
}

impl<B> CountedBody<B> {
    /// The request is blocked from the start: the transport does not request the first part while
    /// the client does not read earlier responses.
    pub(super) fn new(body: B, mut in_flight: InFlight) -> Self {
        in_flight.block();
        Self {
            body: BoundedFrames::new(body),
            is_polled: false,
            in_flight,
        }
    }
}

impl<B: Body<Data = Bytes>> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let polled = this.body.as_mut().poll_frame(cx);
        let is_first = !std::mem::replace(this.is_polled, true);
        match &polled {
            // A body of one part is blocked since its creation a moment ago. This saves most
            // responses a lock.
            Poll::Ready(Some(Ok(_))) if is_first && this.body.is_end_stream() => {}
            Poll::Ready(Some(Ok(_))) => this.in_flight.block(),
            Poll::Ready(None | Some(Err(_))) | Poll::Pending => this.in_flight.unblock(),
        }
        polled
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
    use std::{collections::VecDeque, sync::Arc, task::Waker, time::Duration};

    use tokio::time::Instant;

    use super::*;
    use crate::connection::{
        activity::{Activity, Inactivity, InactivityLimits},
        bounded_frames::MAX_FRAME,
    };

    const LIMIT: Duration = Duration::from_secs(30);
    const LIMITS: InactivityLimits = InactivityLimits {
        idle: LIMIT,
        blocked: LIMIT,
    };

    /// A body whose queued frames are ready and which is pending without any.
    #[derive(Default)]
    struct Frames(VecDeque<Bytes>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.pop_front().map_or(Poll::Pending, |data| {
                Poll::Ready(Some(Ok(Frame::data(data))))
            })
        }
    }

    fn counted(activity: &Arc<Activity>, frames: &[usize]) -> CountedBody<Frames> {
        let frames = frames
            .iter()
            .map(|length| vec![0; *length].into())
            .collect();
        CountedBody::new(Frames(frames), activity.begin().unwrap())
    }

    /// Takes the next chunk as the transport does and returns its length.
    fn take(body: &mut CountedBody<Frames>) -> Option<usize> {
        match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(frame))) => Some(frame.into_data().unwrap().len()),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_from_its_start_and_from_the_end_of_its_last_request() {
        let activity = Activity::new();
        assert_eq!(activity.next_check(LIMITS), Some(Instant::now() + LIMIT));
        tokio::time::advance(LIMIT).await;
        assert_eq!(activity.next_check(LIMITS), None);

        let request = activity.begin();
        tokio::time::advance(LIMIT * 10).await;
        assert!(activity.next_check(LIMITS).is_some(), "busy");
        drop(request);
        assert_eq!(activity.next_check(LIMITS), Some(Instant::now() + LIMIT));
    }

    /// L9: a connection reaches its limit if no part of a response is taken for that time, before
    /// or after the first part.
    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_taken_blocks() {
        for taken in 0..3 {
            let activity = Activity::new();
            let mut body = counted(&activity, &[1, 1, 1, 1]);
            for _ in 0..taken {
                tokio::time::advance(LIMIT - Duration::from_secs(1)).await;
                assert_eq!(take(&mut body), Some(1));
                assert_eq!(
                    activity.next_check(LIMITS),
                    Some(Instant::now() + LIMIT),
                    "a part was taken"
                );
            }
            assert_eq!(
                activity.inactivity(),
                Some(Inactivity::Blocked(Instant::now()))
            );
            tokio::time::advance(LIMIT).await;
            assert_eq!(activity.next_check(LIMITS), None);
            assert!(activity.close());
            assert!(activity.begin().is_none());
        }
    }

    /// A stream without events waits for its upstream, not for the client.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_is_not_blocked() {
        let activity = Activity::new();
        let mut body = counted(&activity, &[1]);
        assert_eq!(take(&mut body), Some(1));
        assert_eq!(take(&mut body), None);
        tokio::time::advance(LIMIT * 10).await;
        assert!(activity.next_check(LIMITS).is_some());
        assert!(activity.inactivity().is_none());
        assert!(!activity.close());
        drop(body);
        assert_eq!(
            activity.inactivity(),
            Some(Inactivity::Idle(Instant::now()))
        );
    }

    /// A blocked response does not end the other responses of its connection.
    #[tokio::test(start_paused = true)]
    async fn a_connection_is_blocked_when_all_its_requests_are() {
        let activity = Activity::new();
        let _paused = counted(&activity, &[1]);
        let mut quiet = counted(&activity, &[]);
        assert_eq!(take(&mut quiet), None);

        tokio::time::advance(LIMIT).await;
        assert!(activity.inactivity().is_none());
        drop(quiet);
        assert_eq!(
            activity.inactivity(),
            Some(Inactivity::Blocked(Instant::now())),
            "the end of a request is progress"
        );

        let begun = activity.begin();
        tokio::time::advance(LIMIT).await;
        assert!(activity.inactivity().is_none());
        assert!(begun.is_some());
    }

    /// A client that takes large frames slowly makes progress within them.
    #[tokio::test]
    async fn a_large_frame_leaves_in_pieces() {
        let mut body = counted(&Activity::new(), &[2 * MAX_FRAME + 1, 5]);
        assert_eq!(take(&mut body), Some(MAX_FRAME));
        assert_eq!(body.size_hint().lower(), (MAX_FRAME + 1) as u64);
        assert!(!body.is_end_stream());
        let rest: Vec<_> = std::iter::from_fn(|| take(&mut body)).collect();
        assert_eq!(rest, [MAX_FRAME, 1, 5]);
    }
}
