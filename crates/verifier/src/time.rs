//! [`Now`] and [`Deadline`]: the time of one verification, and its limit.

use std::time::Duration;

use portcullis_metadata::UnixTime;
use tokio::time::Instant;

/// The maximum time that one verification waits for its issuer and for the throttle, in total.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The current time by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The wall clock, which the times in tokens are compared with.
    pub(crate) unix: UnixTime,
    /// The monotonic clock, which ages are measured with.
    pub(crate) monotonic: Duration,
}

/// The deadline of a verification: 5 s after it first waits. A verification that does not wait never reads the clock.
#[derive(Default)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns the deadline. The first call sets it.
    pub(crate) fn get(&mut self) -> Instant {
        *self.0.get_or_insert_with(|| Instant::now() + TIMEOUT)
    }

    /// Returns whether the verification has waited. The time must then be read again.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }
}
