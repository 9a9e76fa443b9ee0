//! [`IssuerActivity`]: how often an issuer was asked.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often the servers of an issuer were asked since the start, and how often that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerActivity {
    /// Fetches of the keys and the metadata.
    pub fetches: u64,
    /// Fetches that failed. The former keys remain in use.
    pub fetch_failures: u64,
    /// Calls of the introspection endpoint.
    pub introspections: u64,
    /// Calls that failed. A response that a token is not active is not a failure.
    pub introspection_failures: u64,
}

/// The number of operations, and of those that failed.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    all: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, is_failed: bool) {
        self.all.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(is_failed), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> (u64, u64) {
        (self.all.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}
