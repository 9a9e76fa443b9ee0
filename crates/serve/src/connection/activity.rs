use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The requests in progress on one connection.
///
/// A request is blocked while the transport has a part of its response and does not request the
/// next one, because the client does not read or grants no window. A request whose response waits
/// for the upstream is not blocked. A connection is inactive while it has no request, or while all
/// of its requests are blocked.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The number of requests in progress, including blocked ones.
    in_flight: usize,
    blocked: usize,
    /// When a request last ended, or the transport last requested a part of a response.
    last_progress: Instant,
    /// Whether the connection is being closed.
    is_closed: bool,
}

/// Why a connection is inactive, and since when. Idle connections compare as less than blocked
/// ones, and longer times as less than shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Inactivity {
    /// The connection has no request.
    Idle(Instant),
    /// All of its requests are blocked.
    Blocked(Instant),
}

/// How long a connection can be inactive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InactivityLimits {
    pub(crate) idle: Duration,
    pub(crate) blocked: Duration,
}

impl Activity {
    /// Returns the activity of a connection that has just been opened.
    pub(crate) fn new() -> Arc<Self> {
        let last_progress = Instant::now();
        Arc::new(Self(Mutex::new(State {
            in_flight: 0,
            blocked: 0,
            last_progress,
            is_closed: false,
        })))
    }

    /// Counts a request until the returned guard is dropped. Returns `None` if the connection is
    /// being closed.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<InFlight> {
        let is_open = self.with_state(|state| {
            state.in_flight += usize::from(!state.is_closed);
            !state.is_closed
        });
        is_open.then(|| InFlight {
            activity: Arc::clone(self),
            is_blocked: false,
        })
    }

    /// Returns `None` if the connection is active or being closed.
    pub(crate) fn inactivity(&self) -> Option<Inactivity> {
        self.with_state(|state| {
            if state.is_closed {
                None
            } else {
                state.inactivity()
            }
        })
    }

    /// Prevents further requests if the connection is inactive. Returns whether further requests
    /// are prevented.
    pub(crate) fn close(&self) -> bool {
        self.with_state(|state| {
            state.is_closed |= state.inactivity().is_some();
            state.is_closed
        })
    }

    /// Returns when to check the connection again: the earliest time at which its inactivity can
    /// reach its limit. Returns `None` if it has reached the limit.
    pub(crate) fn next_check(&self, limits: InactivityLimits) -> Option<Instant> {
        let now = Instant::now();
        // A connection that becomes inactive after this check cannot reach a limit before this
        // time.
        let latest = now + limits.idle.min(limits.blocked);
        let deadline = match self.with_state(|state| state.inactivity()) {
            None => latest,
            Some(Inactivity::Idle(since)) => since + limits.idle,
            Some(Inactivity::Blocked(since)) => since + limits.blocked,
        };
        (deadline > now).then_some(deadline.min(latest))
    }

    fn with_state<T>(&self, access: impl FnOnce(&mut State) -> T) -> T {
        access(&mut self.0.lock())
    }
}

impl State {
    fn inactivity(&self) -> Option<Inactivity> {
        if self.in_flight == 0 {
            Some(Inactivity::Idle(self.last_progress))
        } else if self.in_flight == self.blocked {
            Some(Inactivity::Blocked(self.last_progress))
        } else {
            None
        }
    }
}

/// One request in progress. It ends on drop, when the transport has taken the last part of its
/// response.
#[derive(Debug)]
#[must_use = "the request is counted only as long as this value exists"]
pub(crate) struct InFlight {
    activity: Arc<Activity>,
    is_blocked: bool,
}

impl InFlight {
    /// The transport has taken a part of the response: the request is blocked until it requests the
    /// next one.
    pub(super) fn block(&mut self) {
        let newly_blocked = usize::from(!self.is_blocked);
        self.is_blocked = true;
        self.activity.with_state(|state| {
            state.blocked += newly_blocked;
            state.last_progress = Instant::now();
        });
    }

    /// The transport has requested the next part, which is not ready: the request waits for the
    /// upstream.
    pub(super) fn unblock(&mut self) {
        if self.is_blocked {
            self.is_blocked = false;
            self.activity.with_state(|state| state.blocked -= 1);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.activity.with_state(|state| {
            state.in_flight -= 1;
            state.blocked -= usize::from(self.is_blocked);
            state.last_progress = Instant::now();
        });
    }
}
