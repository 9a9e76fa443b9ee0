use std::time::Duration;

use tokio::time::Instant;

/// The maximum time that one verification waits for its issuer and for the throttle, in total.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The deadline of a verification: 5 s after it first waits. A verification that does not wait
/// never reads the clock.
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
