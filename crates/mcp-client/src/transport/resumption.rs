//! The resumption of interrupted event streams: where, after which delay, and how often.

mod resume_attempts;
mod resume_position;

use std::time::Duration;

pub use self::{resume_attempts::ResumeAttempts, resume_position::ResumePosition};

/// The maximum number of resumptions without an event.
pub const MAX_RESUMES: u32 = 8;
/// The delay before a resumption, unless the server sets one.
const RESUME_AFTER: Duration = Duration::from_secs(1);
/// The maximum delay before a resumption that this side chooses or, in a call, that the server
/// sets.
pub const MAX_RESUME_AFTER: Duration = Duration::from_secs(30);

/// Returns the delay before an attempt, counted from 1, if the server sets none. It doubles with
/// each attempt, up to [`MAX_RESUME_AFTER`].
pub fn backoff(attempt: u32) -> Duration {
    let doublings = attempt.saturating_sub(1).min(5);
    RESUME_AFTER
        .saturating_mul(1 << doublings)
        .min(MAX_RESUME_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_its_maximum() {
        let delays = [0, 1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|attempt| backoff(attempt).as_secs());
        assert_eq!(delays, [1, 1, 2, 4, 8, 16, 30, 30, 30]);
    }
}
