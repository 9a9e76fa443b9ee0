use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use portcullis_jose::{Algorithm, AlgorithmSet, KeySet, SigningError, SigningKey};
use portcullis_metadata::{Clock, JwkSet};
use serde_json::{Value, json};

use crate::settings::SigningAlgorithm;

/// The signing keys. Each start and each rotation generates new keys with new identifiers.
pub(crate) struct Keys {
    current: Mutex<Arc<KeyRing>>,
    /// The time for which replaced keys stay published: the longest lifetime of what they signed.
    retention: Duration,
    clock: Arc<dyn Clock>,
}

/// The current signing keys and all published keys.
pub(crate) struct KeyRing {
    pair: KeyPair,
    retired: Vec<Retired>,
    /// The published JWK set (RFC 7517 section 5).
    pub(crate) jwks: Bytes,
    /// The same keys, imported to verify tokens.
    pub(crate) verifying: KeySet,
}

/// A signing key for each algorithm.
#[derive(Clone)]
pub(crate) struct KeyPair {
    rs256: Arc<SigningKey>,
    es256: Arc<SigningKey>,
}

/// Public keys that are published but no longer sign.
#[derive(Clone)]
struct Retired {
    public: [Value; 2],
    /// The monotonic time at which they are withdrawn.
    until: Duration,
}

/// What happens to signing keys that are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OldKeys {
    /// The keys stay published until all that they signed has expired, but at most eight replaced
    /// pairs of keys.
    #[default]
    Keep,
    /// These keys and all keys that were replaced before are withdrawn at once, as after a theft.
    /// Tokens that they signed no longer verify.
    Withdraw,
}

/// Why keys cannot be generated or imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("the operating system gave no random bytes")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    Signing(#[from] SigningError),
    #[error("the published keys cannot be parsed")]
    Unreadable,
    #[error("the task that generates keys was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// The maximum number of published old pairs. The oldest is removed first.
const MAX_RETIRED: usize = 8;

impl Keys {
    pub(crate) fn new(
        pair: KeyPair,
        retention: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KeysError> {
        let ring = KeyRing::new(pair, Vec::new())?;
        Ok(Self {
            current: Mutex::new(Arc::new(ring)),
            retention,
            clock,
        })
    }

    /// Returns the current keys. Removes old keys whose tokens have expired.
    pub(crate) fn current(&self) -> Arc<KeyRing> {
        let mut current = self.current.lock();
        let now = self.clock.monotonic();
        if current.retired.iter().any(|retired| retired.until <= now) {
            let living = current
                .retired
                .iter()
                .filter(|retired| now < retired.until)
                .cloned()
                .collect();
            match KeyRing::new(current.pair.clone(), living) {
                Ok(ring) => *current = Arc::new(ring),
                Err(error) => tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot withdraw old keys"
                ),
            }
        }
        Arc::clone(&current)
    }

    /// Replaces the signing keys.
    pub(crate) fn rotate(&self, pair: KeyPair, old: OldKeys) -> Result<(), KeysError> {
        let mut current = self.current.lock();
        let retired = match old {
            OldKeys::Withdraw => Vec::new(),
            OldKeys::Keep => {
                let now = self.clock.monotonic();
                let replaced = Retired {
                    public: current.pair.public(),
                    until: now.saturating_add(self.retention),
                };
                let living = current
                    .retired
                    .iter()
                    .filter(|retired| now < retired.until)
                    .cloned();
                [replaced]
                    .into_iter()
                    .chain(living)
                    .take(MAX_RETIRED)
                    .collect()
            }
        };
        *current = Arc::new(KeyRing::new(pair, retired)?);
        Ok(())
    }
}

impl KeyRing {
    fn new(pair: KeyPair, retired: Vec<Retired>) -> Result<Self, KeysError> {
        let public: Vec<_> = pair
            .public()
            .into_iter()
            .chain(retired.iter().flat_map(|old| old.public.clone()))
            .collect();
        let jwks = Bytes::from(json!({ "keys": public }).to_string());
        let published = JwkSet::parse(&jwks).map_err(|_| KeysError::Unreadable)?;
        let algorithms: AlgorithmSet = [Algorithm::Rs256, Algorithm::Es256].into_iter().collect();
        let (verifying, _) =
            KeySet::from_jwks(&published, algorithms).map_err(|_| KeysError::Unreadable)?;
        Ok(Self {
            pair,
            retired,
            jwks,
            verifying,
        })
    }

    pub(crate) fn signing_key(&self, algorithm: SigningAlgorithm) -> &SigningKey {
        match algorithm {
            SigningAlgorithm::Rs256 => &self.pair.rs256,
            SigningAlgorithm::Es256 => &self.pair.es256,
        }
    }
}

impl KeyPair {
    /// Generates a key for each algorithm, on a blocking thread, because the RSA key takes a
    /// noticeable time.
    pub(crate) async fn generate() -> Result<Self, KeysError> {
        tokio::task::spawn_blocking(Self::generate_blocking).await?
    }

    fn generate_blocking() -> Result<Self, KeysError> {
        // The random suffix distinguishes the keys of different starts and rotations.
        let suffix = getrandom::u32()?;
        let key = |algorithm, name| {
            SigningKey::generate(algorithm, format!("{name}-{suffix:08x}")).map(Arc::new)
        };
        Ok(Self {
            rs256: key(Algorithm::Rs256, "rs256")?,
            es256: key(Algorithm::Es256, "es256")?,
        })
    }

    fn public(&self) -> [Value; 2] {
        [self.rs256.public_jwk(), self.es256.public_jwk()]
    }
}
