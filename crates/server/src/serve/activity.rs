//! What a connection is busy with, so that an idle one can be closed and a busy one is not.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;

/// The requests under way on one connection.
#[derive(Debug)]
pub(super) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    in_flight: usize,
    idle_since: Instant,
    is_closed: bool,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { in_flight: 0, idle_since: Instant::now(), is_closed: false })))
    }

    /// Counts a request until the returned guard is dropped. `None` when the connection is being closed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<InFlight> {
        let is_open = self.state(|state| {
            state.in_flight += usize::from(!state.is_closed);
            !state.is_closed
        });
        is_open.then(|| InFlight(Arc::clone(self)))
    }

    /// Since when the connection has been without a request; `None` while it has one, or is being closed.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.state(|state| (state.in_flight == 0 && !state.is_closed).then_some(state.idle_since))
    }

    /// Lets no further request begin, unless one is in progress. Whether it is so.
    pub(super) fn close(&self) -> bool {
        self.state(|state| {
            state.is_closed |= state.in_flight == 0;
            state.is_closed
        })
    }

    /// When the connection has been idle for `limit`: a moment ahead, or `None` when that is already so.
    pub(super) fn idle_deadline(&self, limit: Duration) -> Option<Instant> {
        let now = Instant::now();
        let deadline = self.state(|state| if state.in_flight > 0 { now + limit } else { state.idle_since + limit });
        (deadline > now).then_some(deadline)
    }

    fn state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One request under way. It ends with the last byte of its answer.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.state(|state| {
            state.in_flight -= 1;
            state.idle_since = Instant::now();
        });
    }
}

pin_project! {
    /// An answer to come, counted as under way to the end of its body. On a connection that is being closed it never comes.
    pub(super) struct CountedAnswer<F> {
        #[pin]
        answer: Option<F>,
        in_flight: Option<InFlight>,
    }
}

impl<F> CountedAnswer<F> {
    pub(super) fn new(answer: F, in_flight: InFlight) -> Self {
        Self { answer: Some(answer), in_flight: Some(in_flight) }
    }

    pub(super) fn never() -> Self {
        Self { answer: None, in_flight: None }
    }
}

impl<F, B> Future for CountedAnswer<F>
where
    F: Future<Output = Response<B>>,
{
    type Output = Result<Response<Counted<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(answer) = this.answer.as_pin_mut() else { return Poll::Pending };
        let response = ready!(answer.poll(cx));
        let in_flight = this.in_flight.take();
        Poll::Ready(Ok(response.map(|body| Counted { body, _in_flight: in_flight })))
    }
}

pin_project! {
    /// An answer's body that keeps its request counted as under way.
    #[derive(Debug)]
    pub(super) struct Counted<B> {
        #[pin]
        body: B,
        _in_flight: Option<InFlight>,
    }
}

impl<B: Body> Body for Counted<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
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

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_from_its_start_and_from_the_end_of_its_last_request() {
        let activity = Activity::new();
        assert_eq!(activity.idle_deadline(LIMIT), Some(Instant::now() + LIMIT));
        tokio::time::advance(LIMIT).await;
        assert_eq!(activity.idle_deadline(LIMIT), None);

        let request = activity.begin();
        tokio::time::advance(LIMIT * 10).await;
        assert!(activity.idle_deadline(LIMIT).is_some(), "busy");
        drop(request);
        assert_eq!(activity.idle_deadline(LIMIT), Some(Instant::now() + LIMIT));
    }
}
