use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use portcullis_jose::{Algorithm, AlgorithmSet, KeySet, SigningError, SigningKey};
use portcullis_metadata::{Clock, JwkSet};
use serde_json::{Value, json};

use crate::{OldKeys, SigningAlgorithm};

/// The signing keys of this process. They are new at each start and at each rotation, under new identifiers.
pub(crate) struct Keys {
    current: Mutex<Arc<KeyRing>>,
    /// How long the tokens of replaced keys can still live.
    keep: Duration,
    clock: Arc<dyn Clock>,
}

/// The keys of one moment: those that sign, and those that verify.
pub(crate) struct KeyRing {
    pair: KeyPair,
    retired: Vec<Retired>,
    /// The public parts (RFC 7517 section 5).
    pub(crate) jwks: Bytes,
    /// What verifies the tokens that they signed.
    pub(crate) verifying: KeySet,
}

/// A key for each algorithm.
#[derive(Clone)]
pub(crate) struct KeyPair {
    rs256: Arc<SigningKey>,
    es256: Arc<SigningKey>,
}

/// The public parts of keys that sign no more.
#[derive(Clone)]
struct Retired {
    public: [Value; 2],
    until: Duration,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("the operating system gave no random bytes")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    Signing(#[from] SigningError),
    #[error("the keys cannot be read back")]
    Unreadable,
}

/// How many replaced pairs are published at most; the oldest goes first.
const MAX_RETIRED: usize = 8;

impl Keys {
    pub(crate) fn new(pair: KeyPair, keep: Duration, clock: Arc<dyn Clock>) -> Result<Self, KeysError> {
        let ring = KeyRing::new(pair, Vec::new())?;
        Ok(Self { current: Mutex::new(Arc::new(ring)), keep, clock })
    }

    /// The keys of now.
    pub(crate) fn current(&self) -> Arc<KeyRing> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic();
        if current.retired.iter().any(|retired| retired.until <= now) {
            let living = current.retired.iter().filter(|retired| now < retired.until).cloned().collect();
            match KeyRing::new(current.pair.clone(), living) {
                Ok(ring) => *current = Arc::new(ring),
                Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "cannot withdraw old keys"),
            }
        }
        Arc::clone(&current)
    }

    /// Signs with a new pair from now on.
    pub(crate) fn rotate(&self, pair: KeyPair, old: OldKeys) -> Result<(), KeysError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let retired = match old {
            OldKeys::Withdraw => Vec::new(),
            OldKeys::Keep => {
                let now = self.clock.monotonic();
                let replaced = Retired { public: current.pair.public(), until: now.saturating_add(self.keep) };
                let living = current.retired.iter().filter(|retired| now < retired.until).cloned();
                [replaced].into_iter().chain(living).take(MAX_RETIRED).collect()
            }
        };
        *current = Arc::new(KeyRing::new(pair, retired)?);
        Ok(())
    }
}

impl KeyRing {
    fn new(pair: KeyPair, retired: Vec<Retired>) -> Result<Self, KeysError> {
        let public: Vec<_> =
            pair.public().into_iter().chain(retired.iter().flat_map(|old| old.public.clone())).collect();
        let jwks = Bytes::from(json!({ "keys": public }).to_string());
        let published = JwkSet::parse(&jwks).map_err(|_| KeysError::Unreadable)?;
        let algorithms: AlgorithmSet = [Algorithm::Rs256, Algorithm::Es256].into_iter().collect();
        let (verifying, _) = KeySet::from_jwks(&published, algorithms).map_err(|_| KeysError::Unreadable)?;
        Ok(Self { pair, retired, jwks, verifying })
    }

    pub(crate) fn of(&self, algorithm: SigningAlgorithm) -> &SigningKey {
        match algorithm {
            SigningAlgorithm::Rs256 => &self.pair.rs256,
            SigningAlgorithm::Es256 => &self.pair.es256,
        }
    }
}

impl KeyPair {
    /// Makes a key for each algorithm. The RSA key takes a noticeable time.
    pub(crate) fn generate() -> Result<Self, KeysError> {
        // With an identifier of its own, a key is not mistaken for the one of an earlier start with the same issuer.
        let start = getrandom::u32()?;
        let key = |algorithm, name| SigningKey::generate(algorithm, format!("{name}-{start:08x}")).map(Arc::new);
        Ok(Self { rs256: key(Algorithm::Rs256, "rs256")?, es256: key(Algorithm::Es256, "es256")? })
    }

    fn public(&self) -> [Value; 2] {
        [self.rs256.public_jwk(), self.es256.public_jwk()]
    }
}
