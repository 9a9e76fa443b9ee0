use std::sync::atomic::{AtomicU64, Ordering};

/// Counts calls of an issuer's servers, and those that failed.
#[derive(Debug, Default)]
pub(crate) struct CallCounter {
    all: AtomicU64,
    failed: AtomicU64,
}

/// The counts of a [`CallCounter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCounts {
    /// All calls, including those that failed.
    pub(crate) all: u64,
    pub(crate) failed: u64,
}

impl CallCounter {
    /// Counts a call that has ended.
    pub(crate) fn add(&self, succeeded: bool) {
        self.all.fetch_add(1, Ordering::Relaxed);
        self.failed
            .fetch_add(u64::from(!succeeded), Ordering::Relaxed);
    }

    /// Returns the counts. A concurrent call may be in one of them only.
    pub(crate) fn get(&self) -> CallCounts {
        CallCounts {
            all: self.all.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}
