//! [`RateLimiter`]: requests per time and client address or principal.

#[cfg(test)]
mod tests;

use std::{fmt, net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use governor::{Quota, clock::Clock as _, middleware::NoOpMiddleware};
use portcullis_metadata::Clock;
use portcullis_verifier::{LimitHasher, Principal};

use super::{
    LimitExceeded,
    key::Key,
    table::{SharedTable, Table},
};

/// The maximum number of requests of a [`Rate`].
const MAX_REQUESTS: u32 = 1_000_000;
/// The shortest period of a [`Rate`].
const MIN_PERIOD: Duration = Duration::from_secs(1);
/// The longest period of a [`Rate`].
const MAX_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// A number of requests per time.
///
/// All requests may arrive at once. After that, one more is allowed each time the period divided by
/// their number has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    requests: NonZeroU32,
    per: Duration,
}

/// Why a [`Rate`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The number of requests is out of range.
    #[error("a rate must have 1 to 1000000 requests")]
    Requests,
    /// The period is out of range.
    #[error("a rate must have a period of 1 second to 24 hours")]
    Per,
}

impl RateError {
    /// Returns a stable code for logs and tests.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Requests => "settings.rate_requests",
            Self::Per => "settings.rate_per",
        }
    }
}

impl Rate {
    /// Creates a rate of 1 to 1,000,000 requests per 1 s to 24 h.
    ///
    /// # Errors
    /// Fails if one of the two is out of range.
    pub fn new(requests: u32, per: Duration) -> Result<Self, RateError> {
        let requests = NonZeroU32::new(requests).filter(|requests| requests.get() <= MAX_REQUESTS);
        let is_valid_period = (MIN_PERIOD..=MAX_PERIOD).contains(&per);
        match requests {
            None => Err(RateError::Requests),
            Some(_) if !is_valid_period => Err(RateError::Per),
            Some(requests) => Ok(Self { requests, per }),
        }
    }

    /// Returns the rate in the form of `governor`.
    fn quota(self) -> Quota {
        let once = Quota::with_period(self.per / self.requests.get());
        once.unwrap_or(Quota::per_second(NonZeroU32::MIN))
            .allow_burst(self.requests)
    }
}

/// Limits the rate of requests per client address or principal. Clones of its `Arc` share the
/// counters.
///
/// The table of counters is bounded. When a shard is full, counters with no recent requests are
/// removed, which does not change any limit. If it is still full, new keys share its overflow
/// counter. Many addresses can therefore neither evict the counters of others nor grow the table. A
/// check allocates only for a new key, and locks one shard.
///
/// Several processes can count together if they exchange their uses: see
/// [`take_uses`](Self::take_uses).
pub struct RateLimiter {
    counts: governor::RateLimiter<Key, SharedTable, MonotonicClock, NoOpMiddleware<Duration>>,
    table: Arc<Table>,
    /// Hashes addresses. The key is secret, so that a client cannot choose an address that collides
    /// with another one.
    hasher: LimitHasher,
    rate: Rate,
}

/// The key of all requests without a principal.
const ANONYMOUS: Key = 0;

impl RateLimiter {
    /// The default number of counters.
    pub const DEFAULT_CAPACITY: usize = 100_000;

    /// Creates a limiter with this number of counters, rounded down to a multiple of 16. Each takes
    /// about 40 bytes.
    pub fn new(rate: Rate, capacity: usize, clock: Arc<dyn Clock>) -> Arc<Self> {
        let table = Arc::new(Table::new(capacity, Arc::clone(&clock)));
        Arc::new(Self {
            counts: governor::RateLimiter::new(
                rate.quota(),
                SharedTable(Arc::clone(&table)),
                MonotonicClock(clock),
            ),
            table,
            hasher: LimitHasher::of_process(),
            rate,
        })
    }

    /// Counts a request from this address. IPv6 addresses are counted by their first 64 bits,
    /// because one client can use all addresses of such a network. All requests without an address
    /// share a counter.
    ///
    /// # Errors
    /// Fails if the rate is exceeded.
    pub fn check_address(&self, address: Option<IpAddr>) -> Result<(), LimitExceeded> {
        // The last 64 bits of an IPv6 network are zero here, so that no other value collides with
        // one.
        let network = match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => u128::from(address.to_ipv6_mapped()),
            Some(IpAddr::V6(address)) => u128::from(address) & !u128::from(u64::MAX),
            None => u128::MAX,
        };
        self.check(self.hasher.hash(network))
    }

    /// Counts a request of this principal: of its subject with any client, or of its client if it
    /// has no subject. All requests without a principal share a counter.
    ///
    /// # Errors
    /// Fails if the rate is exceeded.
    pub fn check_principal(&self, principal: Option<&Principal>) -> Result<(), LimitExceeded> {
        self.check(principal.map_or(ANONYMOUS, Principal::limit_key))
    }

    /// Returns how many requests of each key were allowed since the last call, for other processes
    /// with the same [`LimitHasher`] key. Keys that share the overflow counter are left out, and so
    /// are keys that exceed the number of counters between two calls. The first call returns
    /// nothing: requests are counted by key only from then on, so that a process without others
    /// does not keep the counts.
    pub fn take_uses(&self) -> Vec<(u64, u32)> {
        self.table.take_uses()
    }

    /// Counts requests that other processes have allowed. They can exceed the rate: a client then
    /// waits until its capacity has returned, at most one period longer than after a full use.
    pub fn add_uses(&self, uses: impl IntoIterator<Item = (u64, u32)>) {
        let interval = self.rate.per / self.rate.requests.get();
        self.table
            .add_uses(uses, interval, self.rate.per.saturating_mul(2));
    }

    fn check(&self, key: Key) -> Result<(), LimitExceeded> {
        self.counts.check_key(&key).map_err(|until| LimitExceeded {
            retry_after: until.wait_time_from(self.counts.clock().now()),
        })
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter").finish_non_exhaustive()
    }
}

/// A [`Clock`] for governor.
struct MonotonicClock(Arc<dyn Clock>);

impl governor::clock::Clock for MonotonicClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.monotonic()
    }
}
