//! [`LimitRegistry`]: the rate limits of a configuration, by numbers that replicas have in common.

use std::{collections::HashMap, sync::Arc};

use portcullis_guard::limit::RateLimiter;
use portcullis_state_store::{LimitCounts, LimitUse};
use sha2::{Digest as _, Sha256};

/// The rate limits of a configuration, by numbers that all replicas with the same configuration
/// use.
pub(crate) struct LimitRegistry(HashMap<u64, Arc<RateLimiter>>);

impl LimitRegistry {
    /// Numbers limits by their names.
    pub(crate) fn new<'a>(
        limits: impl IntoIterator<Item = (String, &'a Arc<RateLimiter>)>,
    ) -> Self {
        Self(
            limits
                .into_iter()
                .map(|(name, limit)| (number(&name), Arc::clone(limit)))
                .collect(),
        )
    }

    /// Takes the requests that were counted here. A limit that is new counts from the first call
    /// on.
    pub(crate) fn take_uses(&self) -> Vec<LimitUse> {
        let of_limit = |(limit, limiter): (&u64, &Arc<RateLimiter>)| {
            let limit = *limit;
            limiter
                .take_uses()
                .into_iter()
                .map(move |(key, count)| LimitUse { limit, key, count })
        };
        self.0.iter().flat_map(of_limit).collect()
    }
}

/// Returns the number of a limit: the beginning of a hash of its name.
fn number(name: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = Sha256::digest(name).into();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

impl LimitCounts for LimitRegistry {
    fn add(&self, uses: &[LimitUse]) {
        for used in uses {
            if let Some(limiter) = self.0.get(&used.limit) {
                limiter.add_uses([(used.key, used.count)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use portcullis_guard::limit::Rate;
    use portcullis_testkit::ManualClock;

    use super::*;

    /// E13: the uses of a limit at one replica count for the limit of the same name at another one.
    #[test]
    fn uses_count_by_name() {
        let limiter = |requests| {
            let rate = Rate::new(requests, Duration::from_secs(60)).unwrap();
            RateLimiter::new(rate, 1000, Arc::new(ManualClock::new()))
        };
        let [one_here, other_here, one_there, other_there] = [(); 4].map(|()| limiter(3));
        let here = LimitRegistry::new([
            ("one".to_owned(), &one_here),
            ("other".to_owned(), &other_here),
        ]);
        let there = LimitRegistry::new([
            ("other".to_owned(), &other_there),
            ("one".to_owned(), &one_there),
        ]);
        // The limits count from the first call on.
        assert!(here.take_uses().is_empty());
        assert!(there.take_uses().is_empty());
        assert!((0..2).all(|_| one_here.check_address(None).is_ok()));

        there.add(&here.take_uses());
        assert!(here.take_uses().is_empty(), "uses are taken twice");
        assert!(
            there.take_uses().is_empty(),
            "the uses of another replica are published again"
        );
        let passing = |limiter: &RateLimiter| {
            (0..9)
                .filter(|_| limiter.check_address(None).is_ok())
                .count()
        };
        assert_eq!(passing(&one_there), 1);
        assert_eq!(passing(&other_there), 3);
    }
}
