//! The requests in progress on a connection, which distinguish idle and blocked connections from busy ones.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, header::CONNECTION};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;

/// The maximum size of a chunk that is passed to the transport, in bytes. A client that reads as many within the time
/// limit is never blocked.
const MAX_CHUNK: usize = 16 << 10;

/// The requests in progress on one connection.
///
/// A request is blocked while a part of its response is ready and the transport does not take it, because the client
/// does not read or grants no window. A body that waits for its upstream is not blocked. A connection is at rest while
/// it has no request, or while all of its requests are blocked.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    in_flight: usize,
    /// The number of blocked requests.
    blocked: usize,
    /// When a request last ended, or the transport last took a part of a response.
    progress: Instant,
    is_closed: bool,
}

/// Since when a connection is at rest, and why. In the order of this type, idle connections come before blocked ones,
/// and longer rests before shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rest {
    /// The connection has no request.
    Idle(Instant),
    /// All of its requests are blocked.
    Blocked(Instant),
}

/// How long a connection can be at rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestLimits {
    pub(crate) idle: Duration,
    pub(crate) blocked: Duration,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { in_flight: 0, blocked: 0, progress: Instant::now(), is_closed: false })))
    }

    /// Counts a request until the returned guard is dropped. Returns `None` if the connection is being closed.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<InFlight> {
        let is_open = self.state(|state| {
            state.in_flight += usize::from(!state.is_closed);
            !state.is_closed
        });
        is_open.then(|| InFlight { activity: Arc::clone(self), is_blocked: false })
    }

    /// Returns the connection's rest, or `None` while a request is not blocked or when the connection is being closed.
    pub(crate) fn rest(&self) -> Option<Rest> {
        self.state(|state| state.rest().filter(|_| !state.is_closed))
    }

    /// Prevents further requests if the connection is at rest. Returns whether further requests are prevented.
    pub(crate) fn close(&self) -> bool {
        self.state(|state| {
            state.is_closed |= state.rest().is_some();
            state.is_closed
        })
    }

    /// Returns when to check the connection again: the earliest time at which its rest can reach the limit. Returns
    /// `None` if it has reached the limit.
    pub(crate) fn deadline(&self, limits: RestLimits) -> Option<Instant> {
        let now = Instant::now();
        let next = now + limits.idle.min(limits.blocked);
        let deadline = match self.state(|state| state.rest()) {
            None => next,
            Some(Rest::Idle(since)) => since + limits.idle,
            Some(Rest::Blocked(since)) => since + limits.blocked,
        };
        (deadline > now).then_some(deadline.min(next))
    }

    fn state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn rest(&self) -> Option<Rest> {
        match self.in_flight {
            0 => Some(Rest::Idle(self.progress)),
            in_flight if in_flight == self.blocked => Some(Rest::Blocked(self.progress)),
            _ => None,
        }
    }
}

/// One request in progress. It ends when the transport has taken the last part of its response.
#[derive(Debug)]
pub(crate) struct InFlight {
    activity: Arc<Activity>,
    is_blocked: bool,
}

impl InFlight {
    /// Marks the request as blocked, because a part of its response is ready. It is blocked until the next part is
    /// requested.
    fn block(&mut self) {
        let new = usize::from(!self.is_blocked);
        self.is_blocked = true;
        self.activity.state(|state| {
            state.blocked += new;
            state.progress = Instant::now();
        });
    }

    /// Marks the request as not blocked, because its response waits for the upstream.
    fn unblock(&mut self) {
        if std::mem::take(&mut self.is_blocked) {
            self.activity.state(|state| state.blocked -= 1);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.activity.state(|state| {
            state.in_flight -= 1;
            state.blocked -= usize::from(self.is_blocked);
            state.progress = Instant::now();
        });
    }
}

pin_project! {
    /// A response future whose request counts as in progress until the end of the body. On a connection that is being
    /// closed it never resolves.
    pub(crate) struct CountedResponse<F> {
        #[pin]
        answer: Option<F>,
        in_flight: Option<InFlight>,
        asks_to_close: bool,
    }
}

impl<F> CountedResponse<F> {
    /// `asks_to_close` adds `Connection: close` to the response, which is for HTTP/1.1 only.
    pub(crate) fn new(answer: F, in_flight: InFlight, asks_to_close: bool) -> Self {
        Self { answer: Some(answer), in_flight: Some(in_flight), asks_to_close }
    }

    pub(crate) fn never() -> Self {
        Self { answer: None, in_flight: None, asks_to_close: false }
    }
}

impl<F, B> Future for CountedResponse<F>
where
    F: Future<Output = Response<B>>,
{
    type Output = Result<Response<CountedBody<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(answer) = this.answer.as_pin_mut() else { return Poll::Pending };
        let mut response = ready!(answer.poll(cx));
        if *this.asks_to_close {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let in_flight = this.in_flight.take();
        Poll::Ready(Ok(response.map(|body| CountedBody::new(body, in_flight))))
    }
}

pin_project! {
    /// A response body that keeps its request counted as in progress, and yields chunks of bounded size.
    #[derive(Debug)]
    pub(crate) struct CountedBody<B> {
        #[pin]
        body: B,
        // The part of the last frame that has not been passed on.
        rest: Bytes,
        is_new: bool,
        in_flight: Option<InFlight>,
    }
}

impl<B> CountedBody<B> {
    /// A body is blocked from the start, because the transport does not request its first part while earlier responses
    /// are unread.
    fn new(body: B, mut in_flight: Option<InFlight>) -> Self {
        if let Some(in_flight) = &mut in_flight {
            in_flight.block();
        }
        Self { body, rest: Bytes::new(), is_new: true, in_flight }
    }
}

impl<B: Body<Data = Bytes>> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = self.as_mut().poll_chunk(cx);
        let is_at_end = self.is_end_stream();
        let this = self.project();
        let is_new = std::mem::take(this.is_new);
        if let Some(in_flight) = this.in_flight {
            match &polled {
                // This is the whole body, which is already blocked.
                Poll::Ready(Some(Ok(_))) if is_new && is_at_end => {}
                Poll::Ready(Some(Ok(_))) => in_flight.block(),
                _ => in_flight.unblock(),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper().and_then(|upper| upper.checked_add(rest)) {
            hint.set_upper(upper);
        }
        hint
    }
}

impl<B: Body<Data = Bytes>> CountedBody<B> {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if this.rest.is_empty() {
            let frame = match ready!(this.body.poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => *this.rest = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let length = this.rest.len().min(MAX_CHUNK);
        Poll::Ready(Some(Ok(Frame::data(this.rest.split_to(length)))))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, task::Waker};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const LIMITS: RestLimits = RestLimits { idle: LIMIT, blocked: LIMIT };

    /// A body whose queued frames are ready and which is pending without any.
    #[derive(Default)]
    struct Frames(VecDeque<Bytes>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.pop_front().map_or(Poll::Pending, |data| Poll::Ready(Some(Ok(Frame::data(data)))))
        }
    }

    fn counted(activity: &Arc<Activity>, frames: &[usize]) -> CountedBody<Frames> {
        let frames = frames.iter().map(|length| vec![0; *length].into()).collect();
        CountedBody::new(Frames(frames), Some(activity.begin().unwrap()))
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
        assert_eq!(activity.deadline(LIMITS), Some(Instant::now() + LIMIT));
        tokio::time::advance(LIMIT).await;
        assert_eq!(activity.deadline(LIMITS), None);

        let request = activity.begin();
        tokio::time::advance(LIMIT * 10).await;
        assert!(activity.deadline(LIMITS).is_some(), "busy");
        drop(request);
        assert_eq!(activity.deadline(LIMITS), Some(Instant::now() + LIMIT));
    }

    /// L9: a connection reaches its limit if no part of a response is taken for that time, before or after the first
    /// part.
    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_taken_blocks() {
        for taken in 0..3 {
            let activity = Activity::new();
            let mut body = counted(&activity, &[1, 1, 1, 1]);
            for _ in 0..taken {
                tokio::time::advance(LIMIT - Duration::from_secs(1)).await;
                assert_eq!(take(&mut body), Some(1));
                assert_eq!(activity.deadline(LIMITS), Some(Instant::now() + LIMIT), "a part was taken");
            }
            assert_eq!(activity.rest(), Some(Rest::Blocked(Instant::now())));
            tokio::time::advance(LIMIT).await;
            assert_eq!(activity.deadline(LIMITS), None);
            assert!(activity.close() && activity.begin().is_none());
        }
    }

    /// A stream without events waits for its upstream, not for the client.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_is_not_blocked() {
        let activity = Activity::new();
        let mut body = counted(&activity, &[1]);
        assert_eq!((take(&mut body), take(&mut body)), (Some(1), None));
        tokio::time::advance(LIMIT * 10).await;
        assert!(activity.deadline(LIMITS).is_some() && activity.rest().is_none() && !activity.close());
        drop(body);
        assert_eq!(activity.rest(), Some(Rest::Idle(Instant::now())));
    }

    /// A blocked response does not end the other responses of its connection.
    #[tokio::test(start_paused = true)]
    async fn a_connection_is_blocked_when_all_its_requests_are() {
        let activity = Activity::new();
        let _paused = counted(&activity, &[1]);
        let mut quiet = counted(&activity, &[]);
        assert_eq!(take(&mut quiet), None);
        tokio::time::advance(LIMIT).await;
        assert!(activity.rest().is_none());
        drop(quiet);
        assert_eq!(activity.rest(), Some(Rest::Blocked(Instant::now())), "the end of a request is progress");
        let begun = activity.begin();
        tokio::time::advance(LIMIT).await;
        assert!(activity.rest().is_none() && begun.is_some());
    }

    /// A client that takes large frames slowly makes progress within them.
    #[tokio::test]
    async fn a_large_frame_leaves_in_pieces() {
        let mut body = counted(&Activity::new(), &[2 * MAX_CHUNK + 1, 5]);
        assert_eq!(take(&mut body), Some(MAX_CHUNK));
        assert_eq!(body.size_hint().lower(), (MAX_CHUNK + 1) as u64);
        assert!(!body.is_end_stream());
        let rest: Vec<_> = std::iter::from_fn(|| take(&mut body)).collect();
        assert_eq!(rest, [MAX_CHUNK, 1, 5]);
    }
}
