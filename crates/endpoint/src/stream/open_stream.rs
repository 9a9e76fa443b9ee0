//! [`OpenStream`]: an event stream, which its body, its session and the registry have in common.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::Waker,
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_guard::{Caller, Operation, ProtectedResource, RequestId};
use portcullis_metadata::UnixTime;
use portcullis_session::Session;

use super::{
    EndedStream, StreamEndReason, StreamPurpose, authorization::StreamAuthorization, millis,
    session_streams::SessionStreams, silence::Silence,
};

/// The time in which a stream that must end completes its current event.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// An open stream. It exists as long as the response body.
pub(crate) struct OpenStream {
    pub(super) request_id: RequestId,
    pub(super) authorization: Arc<StreamAuthorization>,
    pub(super) resource: Arc<ProtectedResource>,
    /// The message that the stream answers; `None` for GET.
    pub(super) operation: Option<Operation>,
    pub(super) session: Option<StreamSession>,
    pub(super) purpose: StreamPurpose,
    pub(super) silence: Silence,
    state: AtomicU8,
    /// The time at which the state became [`State::Finishing`], in milliseconds of the monotonic
    /// clock.
    finishing_since: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

/// The session of a stream, and its open streams.
pub(super) struct StreamSession {
    pub(super) session: Arc<Session>,
    pub(super) streams: Arc<SessionStreams>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The stream continues.
    Open,
    /// The stream may complete its current event.
    Finishing,
    /// The stream must stop at once.
    Stopped,
}

/// The time of a sweep by both clocks.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) unix: UnixTime,
    pub(super) monotonic: Duration,
    /// Whether the registry is draining.
    pub(super) is_draining: bool,
}

/// The result of a sweep's check.
pub(super) enum Checked {
    Open,
    /// Nothing was sent for so long that a comment is due.
    Silent,
    /// The stream has had to end since the last check.
    Ended(StreamEndReason),
    /// The stream had to end before, and the body is still open.
    Finishing,
}

impl OpenStream {
    /// Returns a stream that the caller's request opens at the time `now`, by the monotonic clock.
    pub(super) fn new(
        caller: &Caller,
        resource: Arc<ProtectedResource>,
        session: Option<StreamSession>,
        purpose: StreamPurpose,
        response_grace: Duration,
        now: Duration,
    ) -> Self {
        // A client that only listens has no request that was authorized once.
        let grace = match &purpose {
            StreamPurpose::Answer => response_grace,
            StreamPurpose::Listen { .. } => Duration::ZERO,
        };
        Self {
            request_id: caller.request_id().clone(),
            authorization: Arc::new(StreamAuthorization::new(caller, grace)),
            resource,
            operation: caller.record().operation().cloned(),
            session,
            purpose,
            silence: Silence::begin(now),
            state: AtomicU8::new(State::Open as u8),
            finishing_since: AtomicU64::new(0),
            waker: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Open,
            1 => State::Finishing,
            _ => State::Stopped,
        }
    }

    /// Sets the task to wake when the state changes.
    pub(super) fn set_waker(&self, waker: &Waker) {
        let mut held = self.waker.lock();
        match &mut *held {
            Some(held) => held.clone_from(waker),
            None => *held = Some(waker.clone()),
        }
    }

    /// Wakes the body's task. The waker stays: a wake-up can be lost while the connection is being
    /// polled.
    pub(super) fn wake(&self) {
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Checks whether the stream must end, and updates its state.
    pub(super) fn check(&self, now: Now) -> Checked {
        match self.state() {
            State::Open => match self.end_reason(now) {
                None if self.silence.check(now.monotonic) => Checked::Silent,
                None => Checked::Open,
                Some(reason) if self.finish(now) => Checked::Ended(reason),
                // Another thread has ended it since.
                Some(_) => Checked::Finishing,
            },
            State::Finishing => {
                let since = self.finishing_since.load(Ordering::Relaxed);
                if millis(now.monotonic).saturating_sub(since) >= millis(FINISH_TIMEOUT) {
                    self.state.store(State::Stopped as u8, Ordering::Release);
                }
                Checked::Finishing
            }
            State::Stopped => Checked::Finishing,
        }
    }

    /// Ends the stream after its current event. Returns true once, for the first call.
    pub(super) fn finish(&self, now: Now) -> bool {
        if self.state() != State::Open {
            return false;
        }
        self.finishing_since
            .store(millis(now.monotonic), Ordering::Relaxed);
        let open = State::Open as u8;
        let finishing = State::Finishing as u8;
        self.state
            .compare_exchange(open, finishing, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns why the stream must end, if it must.
    fn end_reason(&self, now: Now) -> Option<StreamEndReason> {
        if self
            .session
            .as_ref()
            .is_some_and(|of| of.session.has_ended())
        {
            return Some(StreamEndReason::SessionEnded);
        }
        match self.authorization.apply_last_introspection(now.unix) {
            Ok(true) => self
                .session
                .iter()
                .for_each(|of| of.streams.update_earliest()),
            Ok(false) => {}
            Err(reason) => return Some(reason),
        }
        if self.authorization.has_expired(now.unix) {
            return Some(StreamEndReason::TokenExpired);
        }
        (now.is_draining && self.purpose.is_listening()).then_some(StreamEndReason::Shutdown)
    }

    /// Returns the report of the stream's end.
    pub(super) fn ended(&self, time: UnixTime, reason: StreamEndReason) -> EndedStream<'_> {
        EndedStream {
            time,
            request_id: &self.request_id,
            session: self.session.as_ref().map(|of| of.session.log_hash()),
            resource: self.resource.resource(),
            principal: self.authorization.principal(),
            reason,
        }
    }
}
