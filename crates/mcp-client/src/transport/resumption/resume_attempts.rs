//! [`ResumeAttempts`]: counts the resumptions of an event stream, and delays them.

use std::time::Duration;

use super::{
    MAX_RESUMES,
    resume_position::{MIN_RETRY, ResumePosition},
};

/// The minimum delay before a resumption doubles after each stream without a message, up to this
/// value. A server that ends every stream at once, with a `retry` field of 0, is therefore not
/// flooded.
const MAX_MIN_DELAY: Duration = Duration::from_secs(1);

/// The resumptions of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResumeAttempts {
    /// Since the last event, including events without a message: a server can let its client poll
    /// while it works.
    without_event: u32,
    /// Since the last message.
    without_message: u32,
}

impl ResumeAttempts {
    /// Resets the counters after events with this number of messages.
    pub fn record(&mut self, messages: usize) {
        self.without_event = 0;
        if messages > 0 {
            self.without_message = 0;
        }
    }

    /// Counts a resumption and returns the delay before it.
    pub fn next_delay(&mut self, position: &ResumePosition) -> Duration {
        self.without_event = self.without_event.saturating_add(1);
        let min_delay = MIN_RETRY
            .saturating_mul(1 << self.without_message.min(6))
            .min(MAX_MIN_DELAY);
        self.without_message = self.without_message.saturating_add(1);
        position.delay(self.without_event).max(min_delay)
    }

    /// Whether more than [`MAX_RESUMES`] resumptions in a row, including the one counted last, are
    /// without an event.
    pub fn are_exhausted(&self) -> bool {
        self.without_event > MAX_RESUMES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(attempts: &mut ResumeAttempts, position: &ResumePosition, count: usize) -> Vec<u128> {
        (0..count)
            .map(|_| attempts.next_delay(position).as_millis())
            .collect()
    }

    #[test]
    fn only_resumptions_without_an_event_are_limited() {
        let mut attempts = ResumeAttempts::default();
        let position = ResumePosition::default();
        delays(&mut attempts, &position, 8);
        assert!(!attempts.are_exhausted());
        delays(&mut attempts, &position, 1);
        assert!(attempts.are_exhausted());
        attempts.record(0);
        delays(&mut attempts, &position, 1);
        assert!(!attempts.are_exhausted());
    }

    /// Events without messages do not let a server be polled at its minimum delay.
    #[test]
    fn the_minimum_delay_grows_until_a_message_arrives() {
        let mut attempts = ResumeAttempts::default();
        let mut position = ResumePosition::default();
        position.record(None, Some(0));
        for expected in [20, 40, 80, 160, 320, 640, 1000, 1000] {
            assert_eq!(delays(&mut attempts, &position, 1), [expected]);
            attempts.record(0);
        }
        attempts.record(1);
        assert_eq!(delays(&mut attempts, &position, 1), [20]);
    }
}
