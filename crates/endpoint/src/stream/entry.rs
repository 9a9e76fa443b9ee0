//! One open event stream, as its body, its session and the registry share it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::Waker,
    time::Duration,
};

use portcullis_guard::{ProtectedResource, RequestId};
use portcullis_metadata::{Scopes, UnixTime};
use portcullis_session::LogHash;
use portcullis_verifier::{HeldToken, VerifiedToken, WatchedToken};

use super::{EndedStream, SessionStreams, StreamEndReason};

/// How long a stream whose authorization has ended may take to complete the event that it is in.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// The validity of a token without an expiry.
const WITHOUT_END: u64 = u64::MAX;

/// An open stream. It lives as long as the answer's body.
pub(crate) struct OpenStream {
    pub(super) request_id: RequestId,
    /// The token that opened it.
    pub(super) verified: VerifiedToken,
    pub(super) resource: Arc<ProtectedResource>,
    pub(super) session: Option<(LogHash, Arc<SessionStreams>)>,
    /// Until when the token that authorizes the stream is valid, in milliseconds of Unix time.
    valid_until: AtomicU64,
    /// That token, where it is introspected.
    watched: Mutex<Option<Arc<WatchedToken>>>,
    state: AtomicU8,
    /// When the state became [`State::Finishing`], in milliseconds of the monotonic clock.
    finishing_since: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

/// What a stream may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Everything.
    Open,
    /// Complete the event that it is in.
    Finishing,
    /// Nothing.
    Stopped,
}

/// The two readings of the clock that streams are compared with.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) unix: UnixTime,
    pub(super) monotonic: Duration,
}

/// What a sweep finds of a stream.
pub(super) enum Found {
    Open,
    /// Its authorization has just ended.
    Ended(StreamEndReason),
    /// Its authorization has ended, and its body has not.
    Waiting,
}

/// A token in the form that streams compare: its validity in milliseconds of Unix time. A token whose issuer names no expiry
/// has none as long as it can be checked again.
pub(super) fn validity(verified: &VerifiedToken, can_be_checked: bool) -> u64 {
    let principal = verified.principal();
    match principal.valid_until() {
        Some(end) => end.as_millis(),
        None if can_be_checked => WITHOUT_END,
        None => principal.expires().as_millis(),
    }
}

impl OpenStream {
    pub(super) fn new(
        request_id: RequestId,
        verified: VerifiedToken,
        held: Option<&HeldToken>,
        resource: Arc<ProtectedResource>,
        session: Option<(LogHash, Arc<SessionStreams>)>,
    ) -> Self {
        let watched = held.and_then(HeldToken::watch);
        Self {
            request_id,
            valid_until: AtomicU64::new(validity(&verified, watched.is_some())),
            verified,
            resource,
            session,
            watched: Mutex::new(watched),
            state: AtomicU8::new(State::Open as u8),
            finishing_since: AtomicU64::new(0),
            waker: Mutex::default(),
        }
    }

    pub(super) fn valid_until(&self) -> u64 {
        self.valid_until.load(Ordering::Relaxed)
    }

    /// The scopes of the token that opened the stream.
    pub(super) fn scopes(&self) -> &Scopes {
        self.verified.principal().scopes()
    }

    /// From now on another token authorizes the stream.
    pub(super) fn authorize(&self, valid_until: u64, watched: Option<Arc<WatchedToken>>) {
        let mut held = lock(&self.watched);
        let former = std::mem::replace(&mut *held, watched);
        self.valid_until.store(valid_until, Ordering::Relaxed);
        drop(held);
        drop(former);
    }

    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Open,
            1 => State::Finishing,
            _ => State::Stopped,
        }
    }

    /// Remembers the task to wake when the state changes.
    pub(super) fn wake_later(&self, waker: &Waker) {
        let mut held = lock(&self.waker);
        match &mut *held {
            Some(held) => held.clone_from(waker),
            None => *held = Some(waker.clone()),
        }
    }

    /// Has the body polled. It stays registered: a wake-up that comes while its connection is polled may be lost.
    pub(super) fn wake(&self) {
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Compares the stream with the time.
    pub(super) fn check(&self, now: Now) -> Found {
        match self.state() {
            State::Open => match self.end(now.unix) {
                None => Found::Open,
                Some(end) => {
                    self.finishing_since.store(millis(now.monotonic), Ordering::Relaxed);
                    self.state.store(State::Finishing as u8, Ordering::Release);
                    Found::Ended(end)
                }
            },
            State::Finishing => {
                let since = self.finishing_since.load(Ordering::Relaxed);
                if millis(now.monotonic).saturating_sub(since) >= millis(FINISH_TIMEOUT) {
                    self.state.store(State::Stopped as u8, Ordering::Release);
                }
                Found::Waiting
            }
            State::Stopped => Found::Waiting,
        }
    }

    /// Why the stream's authorization has ended, if it has.
    fn end(&self, now: UnixTime) -> Option<StreamEndReason> {
        if self.verified.principal().is_introspected()
            && let Err(end) = self.take_latest()
        {
            return Some(end);
        }
        (now.as_millis() >= self.valid_until()).then_some(StreamEndReason::TokenExpired)
    }

    /// Takes the scopes and the expiry from the last check of an introspected token.
    fn take_latest(&self) -> Result<(), StreamEndReason> {
        // Held until the validity is stored: another token may take this one's place.
        let watched = lock(&self.watched);
        let Some(latest) = watched.as_ref().map(|watched| watched.latest()) else { return Ok(()) };
        let latest = latest?;
        if !latest.principal().scopes().covers(self.scopes()) {
            return Err(StreamEndReason::ScopesReduced);
        }
        let valid_until = validity(&latest, true);
        let former = self.valid_until.swap(valid_until, Ordering::Relaxed);
        // Whoever changes a session's streams takes the session's lock first.
        drop(watched);
        if former != valid_until
            && let Some((_, streams)) = &self.session
        {
            streams.note_changed_validity();
        }
        Ok(())
    }

    pub(super) fn ended(&self, time: UnixTime, reason: StreamEndReason) -> EndedStream<'_> {
        EndedStream {
            time,
            request_id: &self.request_id,
            session: self.session.as_ref().map(|(log_hash, _)| *log_hash),
            resource: self.resource.resource(),
            principal: self.verified.principal(),
            reason,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
