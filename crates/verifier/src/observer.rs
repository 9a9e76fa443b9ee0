//! [`VerificationObserver`]: observes verifications, for metrics.

use std::{fmt, time::Duration};

/// Observes the verifications of a [`Verifier`](crate::Verifier), for metrics. It is set in
/// [`VerifierSettings::observer`](crate::VerifierSettings::observer).
///
/// It is called on the task of the request and must not block. It receives neither the token nor
/// the result.
///
/// ```
/// use std::{sync::atomic::{AtomicU64, Ordering}, time::Duration};
///
/// use portcullis_verifier::VerificationObserver;
///
/// #[derive(Debug, Default)]
/// struct Counters {
///     hits: AtomicU64,
///     misses: AtomicU64,
/// }
///
/// impl VerificationObserver for Counters {
///     fn cached(&self) {
///         self.hits.fetch_add(1, Ordering::Relaxed);
///     }
///
///     fn verified(&self, _elapsed: Duration) {
///         self.misses.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// ```
pub trait VerificationObserver: fmt::Debug + Send + Sync + 'static {
    /// Called when a token was found in the cache.
    fn cached(&self);

    /// Called when a token was verified or rejected without the cache, with the time that it took.
    /// Waiting for keys and for introspection is included.
    fn verified(&self, elapsed: Duration);
}
