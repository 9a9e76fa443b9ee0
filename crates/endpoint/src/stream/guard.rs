//! The registration of a response body that is an event stream.

use std::{fmt, sync::Arc, task::Waker};

use bytes::Bytes;
use http_body::Frame;

use super::{
    StreamRegistry,
    boundary::Boundary,
    open_stream::{OpenStream, State},
    registry::SlotIndex,
};

/// Keeps a stream registered and tracks its events.
pub(crate) struct StreamGuard {
    registry: StreamRegistry,
    slot: SlotIndex,
    stream: Arc<OpenStream>,
    /// `None` for encoded streams, whose events are not visible.
    boundary: Option<Boundary>,
}

/// The position at which a stream without authorization stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStop {
    /// After a complete event.
    AfterEvent,
    /// Within an event that was not completed in time.
    WithinEvent,
}

impl StreamGuard {
    pub(super) fn new(
        registry: StreamRegistry,
        slot: SlotIndex,
        stream: Arc<OpenStream>,
        boundary: Option<Boundary>,
    ) -> Self {
        Self { registry, slot, stream, boundary }
    }

    /// Returns whether and how the stream must stop now.
    pub(crate) fn stop(&self) -> Option<StreamStop> {
        let state = self.stream.state();
        if state == State::Open {
            None
        } else if self.boundary.is_none_or(Boundary::is_reached) {
            Some(StreamStop::AfterEvent)
        } else {
            (state == State::Stopped).then_some(StreamStop::WithinEvent)
        }
    }

    /// Sets the task to wake when the stream must stop. Call [`stop`](Self::stop) afterwards: earlier changes wake no
    /// task.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        self.stream.set_waker(waker);
    }

    /// Returns the part of a frame that may be sent: the whole frame, or the rest of the last event.
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
        self.registry.remove(self.slot);
    }
}

impl fmt::Debug for StreamGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamGuard").field("request_id", &self.stream.request_id).finish_non_exhaustive()
    }
}
