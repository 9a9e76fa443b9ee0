//! [`ScriptedStream`]: an inner service whose response body a test writes, chunk by chunk.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use parking_lot::Mutex;
use tower_service::Service;

use crate::Admitted;

/// Response headers, written as in a table of cases.
pub(super) type Headers = &'static [(&'static str, &'static str)];

/// The upstream's side of a response body. Clones write to the same body.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Unsent>>);

/// What the body has not returned yet.
#[derive(Default)]
struct Unsent {
    chunks: VecDeque<Bytes>,
    is_dropped: bool,
}

impl Events {
    /// Lets the body return this chunk as its next frame. The body's task is not woken.
    pub(super) fn send(&self, chunk: &'static str) {
        self.0.lock().chunks.push_back(chunk.into());
    }

    /// Returns whether the endpoint has dropped the body.
    pub(super) fn is_dropped(&self) -> bool {
        self.0.lock().is_dropped
    }
}

/// The body that returns the chunks of its [`Events`]. It never ends by itself.
pub(super) struct EventsBody(Events);

impl Body for EventsBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.0.lock().chunks.pop_front() {
            Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            None => Poll::Pending,
        }
    }
}

impl Drop for EventsBody {
    fn drop(&mut self) {
        self.0.0.lock().is_dropped = true;
    }
}

/// Answers the test's request with these headers and the body of these events.
#[derive(Clone)]
pub(super) struct ScriptedStream {
    pub(super) events: Events,
    pub(super) headers: Headers,
}

impl Service<Admitted> for ScriptedStream {
    type Response = Response<EventsBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _admitted: Admitted) -> Self::Future {
        let mut response = Response::builder();
        for (name, value) in self.headers {
            response = response.header(*name, *value);
        }
        ready(Ok(response.body(EventsBody(self.events.clone())).unwrap()))
    }
}
