//! [`NewDecision`]: the second decision about a request whose body took long to arrive.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use crate::identity::Identity;

/// The age at which a decision must be made again before the request is used.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A decision that a service can ask for, and its result. The guard polls the service, so that
/// neither needs to wake the other.
#[derive(Debug)]
pub(crate) struct NewDecision {
    /// The arrival of the request, by the monotonic clock. The first decision was made later.
    arrival: Duration,
    is_wanted: AtomicBool,
    made: OnceLock<Identity>,
}

impl NewDecision {
    /// Returns the state of a request with one decision.
    pub(crate) fn after(arrival: Duration) -> Self {
        Self {
            arrival,
            is_wanted: AtomicBool::new(false),
            made: OnceLock::new(),
        }
    }

    /// Returns whether the first decision is too old at this time.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.made.get().is_none() && now.saturating_sub(self.arrival) > MAX_AGE
    }

    /// Asks for the decision. Ready when the request was admitted again.
    pub(crate) fn poll(&self) -> Poll<()> {
        if self.made.get().is_some() {
            return Poll::Ready(());
        }
        self.is_wanted.store(true, Ordering::Relaxed);
        Poll::Pending
    }

    /// Returns whether the service waits for the decision.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.made.get().is_none()
    }

    /// Records that the request was admitted again.
    pub(crate) fn admit(&self, identity: Identity) {
        // There is one decision at most.
        let _ = self.made.set(identity);
    }

    /// Returns the token of the new decision, if there is one.
    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.made.get()
    }
}
