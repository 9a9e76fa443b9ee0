use std::time::Duration;

use tokio::time::Instant;

/// How long one request waits at most, for all that is asked of an issuer on its account.
const LIMIT: Duration = Duration::from_secs(5);

/// When a request stops waiting: 5 s after it began to. The clock is read only by those that wait.
#[derive(Default)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// The moment, from the first call on.
    pub(crate) fn get(&mut self) -> Instant {
        *self.0.get_or_insert_with(|| Instant::now() + LIMIT)
    }

    /// Whether the request has waited, so that the time may be another one than when it began.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }
}
