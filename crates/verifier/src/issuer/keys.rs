use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwapOption, Guard};
use portcullis_jose::{AlgorithmSet, KeyError, KeySet, MAX_KEYS, RejectedKey};
use portcullis_metadata::JwkSet;

/// The current keys of one issuer, and a generation that increases when they change.
///
/// Readers never wait. There is one writer at a time: the running refresh or the constructor.
pub(crate) struct Keys {
    current: ArcSwapOption<CurrentKeys>,
    generation: AtomicU64,
}

/// A key set and when it was fetched.
pub(crate) struct CurrentKeys {
    /// The imported keys.
    set: Arc<KeySet>,
    /// The keys as the issuer publishes them, to recognize an unchanged set.
    published: Arc<JwkSet>,
    /// The monotonic time of the fetch.
    fetched: Duration,
    max_age: Duration,
}

impl Keys {
    /// Creates the state without keys, in generation 0.
    pub(crate) fn new() -> Self {
        Self {
            current: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
        }
    }

    /// Returns the generation. A verification reads it before the keys, so that a token verified by
    /// a removed key is never cached under a newer generation.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Increases the generation, so that tokens that were cached before are verified again. The
    /// keys stay.
    pub(crate) fn advance_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the keys for one verification, or `None` before the first set is installed.
    pub(crate) fn current(&self) -> Guard<Option<Arc<CurrentKeys>>> {
        self.current.load()
    }

    /// Installs a key set that was fetched at the monotonic time `fetched` and is fresh for
    /// `max_age`. Returns whether the keys changed. If not, the imported keys and the generation
    /// are kept, and only the age is updated. Keys that cannot be used are logged and left out.
    /// Fails if the set has too many keys. The current keys remain in use.
    pub(crate) fn install(
        &self,
        published: JwkSet,
        algorithms: AlgorithmSet,
        fetched: Duration,
        max_age: Duration,
    ) -> Result<bool, KeyError> {
        let found = published.keys.len() + published.rejected.len();
        if found > MAX_KEYS {
            return Err(KeyError::TooManyKeys { found });
        }
        if let Some(current) = &*self.current()
            && has_same_keys(&current.published, &published)
        {
            let set = Arc::clone(&current.set);
            let published = Arc::clone(&current.published);
            self.current.store(Some(Arc::new(CurrentKeys {
                set,
                published,
                fetched,
                max_age,
            })));
            return Ok(false);
        }
        let (set, rejected) = KeySet::from_jwks(&published, algorithms)?;
        log_rejected(&published, &rejected);
        let keys = CurrentKeys {
            set: Arc::new(set),
            published: Arc::new(published),
            fetched,
            max_age,
        };
        self.current.store(Some(Arc::new(keys)));
        self.advance_generation();
        Ok(true)
    }
}

impl CurrentKeys {
    /// Returns the keys that can be used.
    pub(crate) fn set(&self) -> &KeySet {
        &self.set
    }

    /// Returns the time since the keys were fetched.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.fetched)
    }

    /// Returns how long the keys are fresh.
    pub(crate) fn max_age(&self) -> Duration {
        self.max_age
    }

    /// Returns whether the keys are not older than their maximum age.
    pub(crate) fn is_fresh(&self, now: Duration) -> bool {
        self.age(now) <= self.max_age
    }

    /// Returns whether the keys may verify tokens: they are fresh, or have been stale for at most
    /// `max_stale`.
    pub(crate) fn is_usable(&self, now: Duration, max_stale: Duration) -> bool {
        self.age(now) <= self.max_age.saturating_add(max_stale)
    }
}

/// Returns whether two sets have the same keys, in any order.
fn has_same_keys(current: &JwkSet, fetched: &JwkSet) -> bool {
    current.keys.len() == fetched.keys.len()
        && current.keys.iter().all(|key| fetched.keys.contains(key))
        && fetched.keys.iter().all(|key| current.keys.contains(key))
}

/// Logs malformed keys as warnings. Keys for other purposes are normal, so they are logged at level
/// debug.
fn log_rejected(published: &JwkSet, rejected: &[RejectedKey]) {
    for key in &published.rejected {
        tracing::warn!(
            key.id = key.kid.as_deref(),
            key.failure = key.reason.code(),
            "a published key is rejected: {}",
            key.reason
        );
    }
    for key in rejected {
        tracing::debug!(
            key.id = key.kid.as_deref(),
            key.failure = key.reason.code(),
            "a published key is not used"
        );
    }
}
