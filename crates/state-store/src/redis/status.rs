//! [`Status`]: the connection and the completeness of a replica, for the threads of requests.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};

/// Whether a replica knows the ends of the other replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisState {
    /// The replica knows all ends.
    Complete,
    /// Redis is connected, but the replica does not know yet that it has all ends.
    Joining,
    /// Redis is not connected. For a few seconds,
    /// [`SessionJournal::is_complete`](portcullis_session::SessionJournal::is_complete) remains
    /// true.
    Unreachable,
}

/// What the task of the journal knows. The task writes it, and every thread reads it. Times are
/// those of the monotonic clock.
#[derive(Default)]
pub(crate) struct Status {
    is_connected: AtomicBool,
    /// The end of the replica's lease, in milliseconds; 0 if it is not complete.
    complete_until: AtomicU64,
    was_complete: AtomicBool,
    /// The number of live replicas at the last beat.
    alive: AtomicUsize,
    failure: Mutex<Option<String>>,
}

/// A change of the completeness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// The replica is complete now.
    Completed,
    /// The replica is no longer complete.
    Interrupted,
}

impl Status {
    /// Records that Redis is connected.
    pub(crate) fn connect(&self) {
        self.is_connected.store(true, Ordering::Release);
        *self.failure() = None;
    }

    /// Records why Redis is not connected. Returns whether it was.
    pub(crate) fn disconnect(&self, failure: String) -> bool {
        *self.failure() = Some(failure);
        self.is_connected.swap(false, Ordering::AcqRel)
    }

    /// Records the end of the replica's lease; `None` if it is not complete.
    pub(crate) fn set_complete_until(&self, until: Option<Duration>) -> Change {
        let until = until.map_or(0, |until| until.as_millis() as u64);
        let before = self.complete_until.swap(until, Ordering::AcqRel);
        if until > 0 && before == 0 {
            self.was_complete.store(true, Ordering::Release);
            Change::Completed
        } else if until == 0 && before > 0 {
            Change::Interrupted
        } else {
            Change::None
        }
    }

    /// Records the number of live replicas, with this one.
    pub(crate) fn set_alive(&self, alive: usize) {
        self.alive.store(alive, Ordering::Relaxed);
    }

    /// Returns the number of live replicas at the last beat, with this one; 0 if Redis is not
    /// connected.
    pub(crate) fn alive(&self) -> usize {
        if self.is_connected.load(Ordering::Acquire) {
            self.alive.load(Ordering::Relaxed)
        } else {
            0
        }
    }

    /// Returns whether the replica knows all ends at this time.
    pub(crate) fn is_complete(&self, now: Duration) -> bool {
        now < Duration::from_millis(self.complete_until.load(Ordering::Acquire))
    }

    /// Returns whether the replica was ever complete.
    pub(crate) fn was_complete(&self) -> bool {
        self.was_complete.load(Ordering::Acquire)
    }

    /// Returns the state at this time.
    pub(crate) fn state(&self, now: Duration) -> RedisState {
        match (
            self.is_connected.load(Ordering::Acquire),
            self.is_complete(now),
        ) {
            (false, _) => RedisState::Unreachable,
            (true, true) => RedisState::Complete,
            (true, false) => RedisState::Joining,
        }
    }

    /// Returns why Redis is not connected; `None` if it is, or before the first attempt.
    pub(crate) fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E13: a replica is complete until its lease ends, also while Redis is not connected.
    #[test]
    fn the_state_follows_the_lease_and_the_connection() {
        let status = Status::default();
        let second = Duration::from_secs;
        assert_eq!(status.state(second(0)), RedisState::Unreachable);
        assert_eq!(status.alive(), 0);

        status.connect();
        status.set_alive(3);
        assert_eq!(status.state(second(0)), RedisState::Joining);
        assert_eq!(status.alive(), 3);
        assert_eq!(status.set_complete_until(None), Change::None);
        assert!(!status.was_complete());
        assert_eq!(
            status.set_complete_until(Some(second(5))),
            Change::Completed
        );
        assert_eq!(status.set_complete_until(Some(second(6))), Change::None);
        assert_eq!(
            [5, 6].map(|now| status.state(second(now))),
            [RedisState::Complete, RedisState::Joining]
        );

        assert!(status.disconnect("timed out".to_owned()));
        assert!(!status.disconnect("refused".to_owned()));
        assert_eq!(status.state(second(5)), RedisState::Unreachable);
        assert_eq!(status.alive(), 0);
        assert!(status.is_complete(second(5)));
        assert!(!status.is_complete(second(6)));
        assert_eq!(status.failure().as_deref(), Some("refused"));
        assert_eq!(status.set_complete_until(None), Change::Interrupted);
        assert!(status.was_complete());

        status.connect();
        assert_eq!(*status.failure(), None);
    }
}
