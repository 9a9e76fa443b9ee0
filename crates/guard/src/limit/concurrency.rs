//! [`ConcurrencyLimiter`]: the requests and event streams that one principal has in progress at
//! once.

use std::{
    array,
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::BuildHasherDefault,
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use portcullis_verifier::Principal;

use super::{
    LimitExceeded,
    key::{Key, PassThroughHasher, SHARDS, shard_of},
};

/// The retry time for a request beyond the limit. Most requests are short.
const RETRY_AFTER_REQUESTS: Duration = Duration::from_secs(1);
/// The retry time for an event stream beyond the limit.
const RETRY_AFTER_STREAMS: Duration = Duration::from_secs(5);

/// The number of principals that a shard holds without another allocation. An empty shard keeps no
/// more memory.
const INITIAL_CAPACITY: usize = 14;

/// Limits the requests in progress and the open event streams of each principal. Clones of its
/// `Arc` share the counters.
///
/// A request is in progress from its authorization to the end of the response body. A response of
/// type `text/event-stream` counts as a stream instead, from its head on. At the limit of streams,
/// a GET or another safe method gets 429. The response to any other method is passed on and counts
/// as a request, because the method has been executed. Principals are distinguished as by
/// [`RateLimiter::check_principal`](crate::limit::RateLimiter::check_principal).
///
/// The table has one entry for each principal with something in progress and no others, so it is
/// bounded by the connections and their streams. Each request locks one shard twice, each time for
/// one table probe.
pub struct ConcurrencyLimiter {
    shards: [Mutex<Shard>; SHARDS],
    max_requests: usize,
    max_streams: usize,
}

type Shard = HashMap<Key, InProgress, BuildHasherDefault<PassThroughHasher>>;

/// The requests and streams of one principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InProgress {
    requests: usize,
    streams: usize,
}

/// Counts one request or event stream until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<ConcurrencyLimiter>,
    key: Key,
    counts_as: CountsAs,
}

/// What a permit is counted as.
#[derive(Clone, Copy, Debug)]
enum CountsAs {
    Request,
    Stream,
}

impl ConcurrencyLimiter {
    /// The default number of requests in progress per principal.
    pub const DEFAULT_REQUESTS: usize = 100;
    /// The default number of open event streams per principal.
    pub const DEFAULT_STREAMS: usize = 100;

    /// Creates a limiter with these numbers of requests in progress and open event streams per
    /// principal. With 0, each one exceeds the limit.
    pub fn new(max_requests: usize, max_streams: usize) -> Arc<Self> {
        let shard =
            || Shard::with_capacity_and_hasher(INITIAL_CAPACITY, BuildHasherDefault::default());
        Arc::new(Self {
            shards: array::from_fn(|_| Mutex::new(shard())),
            max_requests,
            max_streams,
        })
    }

    /// Counts one more request of this principal until the permit is dropped. Fails if the
    /// principal has reached the limit.
    pub(crate) fn start_request(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Result<Permit, LimitExceeded> {
        self.start(principal.limit_key())
    }

    /// Counts a request that continues without its client until the permit is dropped, even beyond
    /// the limit: the permit of the client's request is dropped right after.
    pub(crate) fn continue_request(self: &Arc<Self>, principal: &Principal) -> Permit {
        let key = principal.limit_key();
        self.shard(key).entry(key).or_default().requests += 1;
        Permit {
            limiter: Arc::clone(self),
            key,
            counts_as: CountsAs::Request,
        }
    }

    fn start(self: &Arc<Self>, key: Key) -> Result<Permit, LimitExceeded> {
        if self.max_requests == 0 {
            return Err(LimitExceeded {
                retry_after: RETRY_AFTER_REQUESTS,
            });
        }
        let mut shard = self.shard(key);
        let in_progress = shard.entry(key).or_default();
        // A new entry is below the limit, so an error leaves no entry without requests.
        if in_progress.requests >= self.max_requests {
            return Err(LimitExceeded {
                retry_after: RETRY_AFTER_REQUESTS,
            });
        }
        in_progress.requests += 1;
        drop(shard);
        Ok(Permit {
            limiter: Arc::clone(self),
            key,
            counts_as: CountsAs::Request,
        })
    }

    fn shard(&self, key: Key) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(key)].lock()
    }
}

impl Permit {
    /// Counts the request as an event stream from now on. Fails if the principal has reached the
    /// limit on streams. The permit is returned and still counts as a request.
    pub(crate) fn into_stream(mut self) -> Result<Self, (Self, LimitExceeded)> {
        let mut shard = self.limiter.shard(self.key);
        if let Some(in_progress) = shard.get_mut(&self.key) {
            if in_progress.streams >= self.limiter.max_streams {
                drop(shard);
                return Err((
                    self,
                    LimitExceeded {
                        retry_after: RETRY_AFTER_STREAMS,
                    },
                ));
            }
            in_progress.requests = in_progress.requests.saturating_sub(1);
            in_progress.streams += 1;
        }
        drop(shard);
        self.counts_as = CountsAs::Stream;
        Ok(self)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut shard = self.limiter.shard(self.key);
        let Entry::Occupied(mut entry) = shard.entry(self.key) else {
            return;
        };
        let in_progress = entry.get_mut();
        let count = match self.counts_as {
            CountsAs::Request => &mut in_progress.requests,
            CountsAs::Stream => &mut in_progress.streams,
        };
        *count = count.saturating_sub(1);
        if *in_progress == InProgress::default() {
            entry.remove();
            if shard.is_empty() {
                shard.shrink_to(INITIAL_CAPACITY);
            }
        }
    }
}

impl fmt::Debug for ConcurrencyLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimiter")
            .field("max_requests", &self.max_requests)
            .field("max_streams", &self.max_streams)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(limiter: &ConcurrencyLimiter) -> usize {
        limiter.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// L9: requests beyond the limit are rejected until one ends. Other principals are not
    /// affected.
    #[test]
    fn requests_in_progress_are_limited_per_key() {
        let limiter = ConcurrencyLimiter::new(2, 1);
        let first = limiter.start(1).unwrap();
        let _second = limiter.start(1).unwrap();
        assert_eq!(limiter.start(1).err().unwrap().retry_after_secs(), 1);
        assert!(limiter.start(2).is_ok());
        drop(first);
        assert!(limiter.start(1).is_ok());
    }

    /// L9: streams have a limit of their own.
    #[test]
    fn streams_have_their_own_limit() {
        let limiter = ConcurrencyLimiter::new(1, 2);
        let first = limiter.start(1).unwrap().into_stream().unwrap();
        let _second = limiter.start(1).unwrap().into_stream().unwrap();
        assert_eq!(
            limiter
                .start(1)
                .unwrap()
                .into_stream()
                .err()
                .unwrap()
                .1
                .retry_after_secs(),
            5
        );
        drop(first);
        let third = limiter.start(1).unwrap().into_stream().unwrap();
        let _request = limiter.start(1).unwrap();
        assert!(limiter.start(1).is_err());
        drop(third);
    }

    /// L9: a limit of zero rejects every request and leaves no entry.
    #[test]
    fn a_limit_of_zero() {
        let limiter = ConcurrencyLimiter::new(0, 1);
        assert!(limiter.start(1).is_err());
        assert_eq!(entries(&limiter), 0);
    }

    /// L9: the memory of many principals is not kept.
    #[test]
    fn an_empty_table_keeps_little_memory() {
        let limiter = ConcurrencyLimiter::new(1, 1);
        let capacity = || {
            limiter
                .shards
                .iter()
                .map(|shard| shard.lock().capacity())
                .sum::<usize>()
        };
        let initial = capacity();
        let permits: Vec<_> = (0..10_000_u64)
            .map(|key| {
                limiter
                    .start(key.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                    .unwrap()
            })
            .collect();
        assert!(capacity() >= permits.len());
        drop(permits);
        assert_eq!(capacity(), initial);
    }

    proptest! {
        /// L9: after any sequence of starts, streams and ends, the counts equal the permits that
        /// are held, and the table has no other entries.
        #[test]
        fn counts_follow_what_is_in_progress(steps in prop::collection::vec((0..4_u64, 0..4_u8, any::<prop::sample::Index>()), 0..80)) {
            let limiter = ConcurrencyLimiter::new(3, 2);
            let mut held: Vec<Permit> = Vec::new();
            for (key, step, pick) in steps {
                let count = |held: &[Permit], stream: bool| {
                    held.iter().filter(|permit| permit.key == key && matches!(permit.counts_as, CountsAs::Stream) == stream).count()
                };
                let requests = count(&held, false);
                let streams = count(&held, true);
                match step {
                    0 | 1 => {
                        let started = limiter.start(key);
                        prop_assert_eq!(started.is_ok(), requests < 3);
                        held.extend(started);
                    }
                    2 => {
                        if let Some(place) = held.iter().position(|permit| permit.key == key && matches!(permit.counts_as, CountsAs::Request)) {
                            let turned = held.swap_remove(place).into_stream();
                            prop_assert_eq!(turned.is_ok(), streams < 2);
                            held.extend(turned);
                        }
                    }
                    _ if !held.is_empty() => drop(held.swap_remove(pick.index(held.len()))),
                    _ => {}
                }
                let mut keys: Vec<_> = held.iter().map(|permit| permit.key).collect();
                keys.sort_unstable();
                keys.dedup();
                prop_assert_eq!(entries(&limiter), keys.len());
            }
        }
    }
}
