//! [`VerificationObserver`]: observes verifications, for metrics.

use std::{fmt, time::Duration};

/// Observes the verifications of a [`Verifier`](crate::Verifier). It is called on the task of the request and must not block.
pub trait VerificationObserver: fmt::Debug + Send + Sync + 'static {
    /// Called when a token was found in the cache.
    fn cached(&self);

    /// Called when a token was verified or rejected without the cache, with the time that it took. Waiting for keys and for
    /// introspection is included.
    fn verified(&self, elapsed: Duration);
}
