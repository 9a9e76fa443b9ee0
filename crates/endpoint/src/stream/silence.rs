//! The time for which a stream has sent nothing, and the comment that is due then.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// The silence after which a comment is sent.
const COMMENT_AFTER: Duration = Duration::from_secs(15);

/// The silence of a stream. Sent data only sets a flag. The sweep reads the clock, so its period is the precision.
pub(super) struct Silence {
    /// When the last sweep found that data was sent, or that a comment was due, in milliseconds of the monotonic clock.
    since: AtomicU64,
    /// Whether data was sent since the last sweep.
    is_interrupted: AtomicBool,
    is_comment_due: AtomicBool,
}

impl Silence {
    pub(super) fn begin(now: Duration) -> Self {
        Self {
            since: AtomicU64::new(millis(now)),
            is_interrupted: AtomicBool::new(false),
            is_comment_due: AtomicBool::new(false),
        }
    }

    /// Data is sent, so that no comment is due.
    pub(super) fn interrupt(&self) {
        self.is_comment_due.store(false, Ordering::Relaxed);
        self.is_interrupted.store(true, Ordering::Release);
    }

    /// Called by the sweep. Returns whether a comment has become due.
    pub(super) fn check(&self, now: Duration) -> bool {
        let now = millis(now);
        let is_interrupted = self.is_interrupted.swap(false, Ordering::Acquire);
        let silent = now.saturating_sub(self.since.load(Ordering::Relaxed));
        if !is_interrupted && silent < millis(COMMENT_AFTER) {
            return false;
        }
        self.since.store(now, Ordering::Relaxed);
        if !is_interrupted {
            self.is_comment_due.store(true, Ordering::Release);
        }
        !is_interrupted
    }

    /// Returns whether a comment is due, once.
    pub(super) fn take_due(&self) -> bool {
        self.is_comment_due.swap(false, Ordering::Acquire)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// L3: a comment is due once after each 15 s without data.
    #[test]
    fn a_comment_is_due_after_15_seconds() {
        let silence = Silence::begin(secs(100));
        assert!(!silence.check(secs(114)) && !silence.take_due());
        assert!(silence.check(secs(115)));
        assert!(silence.take_due() && !silence.take_due());
        assert!(!silence.check(secs(129)) && silence.check(secs(130)));
    }

    /// L3: data begins a new silence and cancels a comment that is due.
    #[test]
    fn data_interrupts_the_silence() {
        let silence = Silence::begin(secs(0));
        silence.interrupt();
        assert!(!silence.check(secs(15)));
        assert!(!silence.check(secs(29)) && silence.check(secs(30)));
        silence.interrupt();
        assert!(!silence.take_due() && !silence.check(secs(31)));
    }
}
