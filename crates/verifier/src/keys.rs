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

/// The keys of one issuer as they are now, and a count of how often they changed.
///
/// Readers never wait. There is one writer at a time: the refresh under way, or the constructor.
pub(crate) struct Keys {
    held: ArcSwapOption<Held>,
    generation: AtomicU64,
}

/// A key set with the answers that it came from.
pub(crate) struct Held {
    set: Arc<KeySet>,
    published: Arc<JwkSet>,
    fetched: Duration,
    max_age: Duration,
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self { held: ArcSwapOption::empty(), generation: AtomicU64::new(0) }
    }

    /// Which state of the keys this is. Whoever verifies reads it before loading the keys, so that what an outgoing
    /// key verified is never filed under the incoming ones.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The keys, for as long as one verification takes.
    pub(crate) fn held(&self) -> Guard<Option<Arc<Held>>> {
        self.held.load()
    }

    /// Takes a fetched set over. Unchanged keys keep their verifiers and their generation, and only become younger.
    /// Says whether anything changed.
    ///
    /// # Errors
    /// When the set has too many keys; the held ones stay.
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
        if let Some(held) = &*self.held()
            && same_keys(&held.published, &published)
        {
            let (set, published) = (Arc::clone(&held.set), Arc::clone(&held.published));
            self.held.store(Some(Arc::new(Held { set, published, fetched, max_age })));
            return Ok(false);
        }
        let (set, rejected) = KeySet::from_jwks(&published, algorithms)?;
        report(&published, &rejected);
        let held = Held { set: Arc::new(set), published: Arc::new(published), fetched, max_age };
        self.held.store(Some(Arc::new(held)));
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(true)
    }
}

impl Held {
    pub(crate) fn set(&self) -> &KeySet {
        &self.set
    }

    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.fetched)
    }

    pub(crate) fn max_age(&self) -> Duration {
        self.max_age
    }

    pub(crate) fn is_fresh(&self, now: Duration) -> bool {
        self.age(now) <= self.max_age
    }

    /// Whether the keys may still verify: fresh, or stale for no longer than allowed.
    pub(crate) fn is_usable(&self, now: Duration, max_stale: Duration) -> bool {
        self.age(now) <= self.max_age.saturating_add(max_stale)
    }
}

/// Whether two sets hold the same keys, in any order.
fn same_keys(held: &JwkSet, fetched: &JwkSet) -> bool {
    held.keys.len() == fetched.keys.len()
        && held.keys.iter().all(|key| fetched.keys.contains(key))
        && fetched.keys.iter().all(|key| held.keys.contains(key))
}

fn report(published: &JwkSet, rejected: &[RejectedKey]) {
    for key in &published.rejected {
        tracing::warn!(
            key.id = key.kid.as_deref(),
            key.failure = key.reason.code(),
            "a published key is refused: {}",
            key.reason
        );
    }
    for key in rejected {
        tracing::debug!(key.id = key.kid.as_deref(), key.failure = key.reason.code(), "a published key is not taken");
    }
}
