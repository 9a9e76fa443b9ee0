use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use super::millis;

/// The silence after which a comment is sent.
const COMMENT_AFTER: Duration = Duration::from_secs(15);

/// The silence of a stream.
///
/// Data that is sent only sets a flag, and the sweep reads the clock. A comment is therefore up to
/// one period of the sweep late.
pub(super) struct Silence {
    /// When a sweep last found that data had been sent, or a comment was due, in milliseconds of
    /// the monotonic clock.
    since: AtomicU64,
    /// Whether data was sent since the last sweep.
    is_interrupted: AtomicBool,
    is_comment_due: AtomicBool,
}

impl Silence {
    /// Returns the silence of a stream that opens now.
    pub(super) fn begin(now: Duration) -> Self {
        Self {
            since: AtomicU64::new(millis(now)),
            is_interrupted: AtomicBool::new(false),
            is_comment_due: AtomicBool::new(false),
        }
    }

    /// Records that data is sent. No comment is due then.
    pub(super) fn interrupt(&self) {
        self.is_comment_due.store(false, Ordering::Relaxed);
        self.is_interrupted.store(true, Ordering::Release);
    }

    /// Returns whether a comment has become due. The sweep calls this.
    pub(super) fn check(&self, now: Duration) -> bool {
        let now = millis(now);
        if self.is_interrupted.swap(false, Ordering::Acquire) {
            self.since.store(now, Ordering::Relaxed);
            return false;
        }
        let is_due =
            now.saturating_sub(self.since.load(Ordering::Relaxed)) >= millis(COMMENT_AFTER);
        if is_due {
            self.since.store(now, Ordering::Relaxed);
            self.is_comment_due.store(true, Ordering::Release);
        }
        is_due
    }

    /// Returns whether a comment is due. It then counts as sent.
    pub(super) fn take_due(&self) -> bool {
        self.is_comment_due.swap(false, Ordering::Acquire)
    }
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
        assert!(!silence.check(secs(114)));
        assert!(!silence.take_due());
        assert!(silence.check(secs(115)));
        assert!(silence.take_due());
        assert!(!silence.take_due());
        assert!(!silence.check(secs(129)));
        assert!(silence.check(secs(130)));
    }

    /// L3: data begins a new silence and cancels a comment that is due.
    #[test]
    fn data_interrupts_the_silence() {
        let silence = Silence::begin(secs(0));
        silence.interrupt();
        assert!(!silence.check(secs(15)));
        assert!(!silence.check(secs(29)));
        assert!(silence.check(secs(30)));
        silence.interrupt();
        assert!(!silence.take_due());
        assert!(!silence.check(secs(31)));
    }
}
