//! What the body of an event stream does about its authorization.

use std::{fmt, sync::Arc, task::Waker};

use bytes::Bytes;
use http_body::Frame;

use super::{
    StreamRegistry,
    boundary::Boundary,
    entry::{OpenStream, State},
    registry::Place,
};

/// Keeps a stream registered, and follows its events.
pub(crate) struct StreamGuard {
    registry: StreamRegistry,
    place: Place,
    stream: Arc<OpenStream>,
    /// None where events cannot be told apart.
    boundary: Option<Boundary>,
}

/// How a stream ends whose authorization has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Behind a complete event.
    Complete,
    /// Within an event that did not end in time.
    Incomplete,
}

impl StreamGuard {
    pub(super) fn new(
        registry: StreamRegistry,
        place: Place,
        stream: Arc<OpenStream>,
        boundary: Option<Boundary>,
    ) -> Self {
        Self { registry, place, stream, boundary }
    }

    /// Whether the stream has to end now.
    pub(crate) fn end(&self) -> Option<End> {
        let state = self.stream.state();
        if state == State::Open {
            None
        } else if self.boundary.is_none_or(Boundary::is_reached) {
            Some(End::Complete)
        } else {
            (state == State::Stopped).then_some(End::Incomplete)
        }
    }

    /// The stream waits for its next bytes. Ask for its [`end`](Self::end) after this: a change of the state before it
    /// wakes no task.
    pub(crate) fn wake_later(&self, waker: &Waker) {
        self.stream.wake_later(waker);
    }

    /// What may be passed on of a frame: all of it, or the rest of the last event.
    pub(crate) fn pass(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let (Some(boundary), Some(data)) = (&mut self.boundary, frame.data_ref()) else { return frame };
        if self.stream.state() == State::Open {
            boundary.pass(data);
            return frame;
        }
        let length = boundary.pass_event(data);
        frame.map_data(|data| data.slice(..length))
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if let Some((_, streams)) = &self.stream.session {
            streams.remove(&self.stream);
        }
        self.registry.remove(self.place);
    }
}

impl fmt::Debug for StreamGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamGuard").field("request_id", &self.stream.request_id).finish_non_exhaustive()
    }
}
