//! Limits on requests per time, and on requests in progress.

mod concurrency;
mod key;
mod rate;
mod table;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

pub(crate) use self::concurrency::Permit;
pub use self::{
    concurrency::ConcurrencyLimiter,
    rate::{Rate, RateError, RateLimiter},
};

/// The limits that the guard enforces for a resource. Default: none. A request beyond a limit gets
/// 429 with `Retry-After`.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use portcullis_guard::{metadata::SystemClock, limit::{ConcurrencyLimiter, GuardLimits, Rate, RateLimiter}};
///
/// let rate = Rate::new(600, Duration::from_secs(60))?;
/// let mut limits = GuardLimits::default();
/// limits.per_address = Some(RateLimiter::new(rate, RateLimiter::DEFAULT_CAPACITY, Arc::new(SystemClock::new())));
/// limits.in_flight = Some(ConcurrencyLimiter::new(20, 5));
/// # Ok::<(), portcullis_guard::limit::RateError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GuardLimits {
    /// The rate per client address, checked before the token is read. Metadata requests and
    /// preflights do not count. Default: none.
    pub per_address: Option<Arc<RateLimiter>>,
    /// The rate of requests without a valid token per client address. Beyond it, such a request
    /// gets 429 in place of 401, also if it has no token. Requests with a valid token are neither
    /// counted nor rejected, so that one client cannot lock out another one with the same address.
    /// Default: none.
    pub rejected_per_address: Option<Arc<RateLimiter>>,
    /// The rate per principal, checked after the token is verified. Rejected requests count too.
    /// Default: none.
    pub per_principal: Option<Arc<RateLimiter>>,
    /// The number of requests and event streams that one principal has in progress. Default: none.
    pub in_flight: Option<Arc<ConcurrencyLimiter>>,
    /// The JSON body of 429 responses, such as an error of the resource's own protocol. Default: an
    /// OAuth error (`too_many_requests`). `Retry-After` is sent in any case.
    pub exceeded_body: Option<Bytes>,
}

/// A request exceeds a limit. Clients do not learn which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitExceeded {
    /// How long the client should wait before it sends the request again.
    pub retry_after: Duration,
}

impl LimitExceeded {
    /// Returns the value of `Retry-After`: whole seconds, rounded up, at least one.
    pub fn retry_after_secs(self) -> u64 {
        whole_seconds(self.retry_after)
    }
}

/// Rounds up to whole seconds, at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J5: a client that waits for the reported time is allowed.
    #[test]
    fn waits_are_rounded_up() {
        for (millis, secs) in [
            (0, 1),
            (1, 1),
            (999, 1),
            (1000, 1),
            (1001, 2),
            (59_500, 60),
            (60_000, 60),
        ] {
            let exceeded = LimitExceeded {
                retry_after: Duration::from_millis(millis),
            };
            assert_eq!(exceeded.retry_after_secs(), secs, "{millis} ms");
        }
    }
}
