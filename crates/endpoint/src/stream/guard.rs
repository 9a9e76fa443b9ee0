//! Registers responses that are event streams. [`StreamGuard`] keeps one registered, and finds
//! where it may stop.

use std::{fmt, sync::Arc, task::Waker, time::Duration};

use bytes::Bytes;
use http::{Extensions, HeaderMap, header::CONTENT_LENGTH};
use http_body::Frame;
use portcullis_guard::{Caller, ProtectedResource};
use portcullis_metadata::syntax::is_event_stream;
use portcullis_session::Session;
use serde_json::value::RawValue;

use super::{
    StreamPurpose, StreamStopped,
    boundary::Boundary,
    open_stream::{Checked, OpenStream, State, StreamSession},
    registry::{SlotIndex, StreamRegistry},
    session_streams::SessionStreams,
};
use crate::message::is_encoded;

/// The comment that shows clients and proxies that a silent stream is alive.
const COMMENT: &[u8] = b":\n\n";

/// Keeps a stream registered and tracks its events.
pub(crate) struct StreamGuard {
    registry: StreamRegistry,
    slot: SlotIndex,
    stream: Arc<OpenStream>,
    /// `None` for encoded streams, whose events are not visible.
    boundary: Option<Boundary>,
    /// Whether events can be added to those of the inner service.
    is_extensible: bool,
    /// Notifies the inner service that the endpoint has stopped the stream.
    stopped: Option<StreamStopped>,
}

/// The position at which a stream that must end stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStop {
    /// After a complete event, or anywhere in an encoded stream, whose events are not visible.
    AfterEvent,
    /// Within an event that was not completed in time.
    WithinEvent,
}

/// The request that a stream answers.
pub(crate) struct StreamOrigin<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) resource: &'a Arc<ProtectedResource>,
    pub(crate) session: Option<&'a Arc<Session>>,
    pub(crate) purpose: StreamPurpose,
    /// For how long a response continues after its token has expired.
    pub(crate) response_grace: Duration,
}

impl StreamRegistry {
    /// Registers a response, if it is an event stream. `headers` and `extensions` are those of the
    /// response.
    pub(crate) fn open(
        &self,
        origin: StreamOrigin<'_>,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Option<StreamGuard> {
        let StreamOrigin {
            caller,
            resource,
            session,
            purpose,
            response_grace,
        } = origin;
        if !is_event_stream(headers) {
            return None;
        }
        let session = session.and_then(|session| {
            Some(StreamSession {
                session: Arc::clone(session),
                streams: SessionStreams::of(session)?,
            })
        });
        let now = self.now();
        let stream = OpenStream::new(
            caller,
            Arc::clone(resource),
            session,
            purpose,
            response_grace,
            now.monotonic,
        );
        let stream = Arc::new(stream);
        if let Some(StreamSession { streams, .. }) = &stream.session {
            streams.add(&stream.authorization);
        }
        let slot = self.add(&stream);
        if now.is_draining
            && let Checked::Ended(reason) = stream.check(now)
        {
            self.report(&stream.ended(now.unix, reason));
        }
        // The events of an encoded stream are not visible: such a stream stops at once.
        let boundary = (!is_encoded(headers)).then(Boundary::at_start);
        // A body with a `Content-Length` has no space for more events.
        let is_extensible = boundary.is_some() && !headers.contains_key(CONTENT_LENGTH);
        let stopped = extensions.get().cloned();
        Some(StreamGuard {
            registry: self.clone(),
            slot,
            stream,
            boundary,
            is_extensible,
            stopped,
        })
    }
}

impl StreamGuard {
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

    /// Sets the task to wake when the stream must stop. Call [`stop`](Self::stop) afterwards:
    /// earlier changes wake no task.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        self.stream.set_waker(waker);
    }

    /// Returns the comment that is due because nothing was sent for 15 s, between two events.
    pub(crate) fn due_comment(&mut self) -> Option<Bytes> {
        let boundary = self
            .boundary
            .as_mut()
            .filter(|boundary| self.is_extensible && boundary.is_reached())?;
        self.stream.silence.take_due().then(|| {
            boundary.pass(COMMENT);
            Bytes::from_static(COMMENT)
        })
    }

    /// Tells the inner service that the endpoint stops the stream. Returns the last event to send:
    /// the result of `subscriptions/listen` (MCP 2026-07-28, Subscriptions, Graceful Closure), or
    /// nothing for other streams, for those whose body cannot grow, and within an event.
    pub(crate) fn finish(&self, stop: StreamStop) -> Bytes {
        if let Some(stopped) = &self.stopped {
            stopped.set();
        }
        match &self.stream.purpose {
            StreamPurpose::Listen { id: Some(id) }
                if self.is_extensible && stop == StreamStop::AfterEvent =>
            {
                listen_result(id).into()
            }
            _ => Bytes::new(),
        }
    }

    /// Returns the part of a frame that may be sent: the whole frame, or the rest of the last
    /// event.
    pub(crate) fn pass(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        self.stream.silence.interrupt();
        let (Some(boundary), Some(data)) = (&mut self.boundary, frame.data_ref()) else {
            return frame;
        };
        if self.stream.state() == State::Open {
            boundary.pass(data);
            return frame;
        }
        let length = boundary.pass_event(data);
        frame.map_data(|data| data.slice(..length))
    }
}

/// Returns the event with the result of `subscriptions/listen`. An id is a number or a string, on
/// one line.
fn listen_result(id: &RawValue) -> String {
    format!(
        "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\
         \"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}}}}}\n\n"
    )
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if let Some(StreamSession { streams, .. }) = &self.stream.session {
            streams.remove(&self.stream.authorization);
        }
        self.registry.remove(self.slot);
    }
}

impl fmt::Debug for StreamGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamGuard")
            .field("request_id", &self.stream.request_id)
            .finish_non_exhaustive()
    }
}
