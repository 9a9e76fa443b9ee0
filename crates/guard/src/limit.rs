mod concurrency;
mod table;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use governor::{Quota, clock::Clock as _, middleware::NoOpMiddleware};
use portcullis_metadata::Clock;
use portcullis_verifier::Principal;

pub use self::concurrency::ConcurrencyLimiter;
pub(crate) use self::concurrency::Permit;
use self::table::{Key, Table};
use crate::respond::whole_seconds;

/// How many requests may come in how long a time.
///
/// All of them may come at once; used up, they come back one by one, evenly over that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    requests: NonZeroU32,
    per: Duration,
}

/// Why numbers are no [`Rate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The number of requests is out of range.
    #[error("a rate is 1 to 1000000 requests")]
    Requests,
    /// The time is out of range.
    #[error("a rate is per 1 second to 24 hours")]
    Per,
}

impl RateError {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Requests => "settings.rate_requests",
            Self::Per => "settings.rate_per",
        }
    }
}

impl Rate {
    /// 1 to 1,000,000 requests per 1 s to 24 h.
    ///
    /// # Errors
    /// When one of the two is out of range.
    pub fn new(requests: u32, per: Duration) -> Result<Self, RateError> {
        let requests = NonZeroU32::new(requests).filter(|requests| requests.get() <= 1_000_000);
        let is_long = (Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60)).contains(&per);
        match requests {
            None => Err(RateError::Requests),
            Some(_) if !is_long => Err(RateError::Per),
            Some(requests) => Ok(Self { requests, per }),
        }
    }

    fn quota(self) -> Quota {
        let once = Quota::with_period(self.per / self.requests.get());
        once.unwrap_or(Quota::per_second(NonZeroU32::MIN)).allow_burst(self.requests)
    }
}

/// Counts the requests of everybody apart, and says who has to wait. Clones of its `Arc` count together.
///
/// Its table is bounded. When it is full, whoever has nothing used up is forgotten, which changes nothing for them.
/// Newcomers that even so find no room share a few common counts: many addresses neither push out what others have used
/// up, nor make the table grow, and the limit holds. A check allocates nothing but for newcomers, and waits for nothing
/// but the lock of a part of the table.
pub struct RateLimiter {
    counts: governor::RateLimiter<Key, Table, Time, NoOpMiddleware<Duration>>,
    /// Of addresses. Its key is this limiter's own, so that nobody can choose whose count is theirs.
    hasher: RandomState,
}

/// Whose requests those are that come without a principal.
const EVERYBODY: Key = 0;

/// A request came before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// When the next one may come.
    pub retry_after: Duration,
}

impl RateLimiter {
    /// How many are counted apart by default.
    pub const DEFAULT_CAPACITY: usize = 100_000;

    /// A limiter that counts so many apart, about 40 bytes each.
    pub fn new(rate: Rate, capacity: usize, clock: Arc<dyn Clock>) -> Arc<Self> {
        let table = Table::new(capacity, Arc::clone(&clock));
        Arc::new(Self {
            counts: governor::RateLimiter::new(rate.quota(), table, Time(clock)),
            hasher: RandomState::new(),
        })
    }

    /// Counts a request from this address. Of an IPv6 address the first 64 bits count, since a client may have all of
    /// the rest; without one, all such requests count together.
    ///
    /// # Errors
    /// When it has to wait.
    pub fn check_address(&self, address: Option<IpAddr>) -> Result<(), LimitExceeded> {
        // IPv4 addresses are those IPv6 ones that they are written as, which end in more than zeros.
        let network = match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => u128::from(address.to_ipv6_mapped()),
            Some(IpAddr::V6(address)) => u128::from(address) & !u128::from(u64::MAX),
            None => u128::from(Ipv6Addr::UNSPECIFIED),
        };
        self.check(self.hasher.hash_one(network))
    }

    /// Counts a request of this principal: of its subject, whichever client it uses, or of its client where it has no
    /// subject. Without a principal, where authentication is off, everybody counts together.
    ///
    /// # Errors
    /// When it has to wait.
    pub fn check_principal(&self, principal: Option<&Principal>) -> Result<(), LimitExceeded> {
        self.check(principal.map_or(EVERYBODY, Principal::limit_key))
    }

    fn check(&self, whose: Key) -> Result<(), LimitExceeded> {
        self.counts
            .check_key(&whose)
            .map_err(|until| LimitExceeded { retry_after: until.wait_time_from(self.counts.clock().now()) })
    }
}

impl LimitExceeded {
    /// The wait as `Retry-After` tells it: whole seconds, rounded up, at least one.
    pub fn retry_after_secs(self) -> u64 {
        whole_seconds(self.retry_after)
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter").finish_non_exhaustive()
    }
}

struct Time(Arc<dyn Clock>);

impl governor::clock::Clock for Time {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.monotonic()
    }
}

/// The limits that the guard enforces for a resource. Default: none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GuardLimits {
    /// The rate per client address, checked before the token is read. Metadata requests and preflights do not count.
    /// Default: none.
    pub per_address: Option<Arc<RateLimiter>>,
    /// The rate per principal, checked after the token is verified. Rejected requests count too. Default: none.
    pub per_principal: Option<Arc<RateLimiter>>,
    /// The number of requests and event streams that one principal has in progress. Default: none.
    pub in_flight: Option<Arc<ConcurrencyLimiter>>,
}
