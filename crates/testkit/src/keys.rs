use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use portcullis_jose::{Algorithm, SigningKey};

/// The keys of the process, by issuer, algorithm and generation.
type Cache = HashMap<(String, Algorithm, usize), Arc<OnceLock<Arc<SigningKey>>>>;

/// Returns the key of an issuer for a generation. Keys are cached for the process, because
/// generating RSA keys is slow.
pub(crate) fn signing_key(
    issuer: &str,
    algorithm: Algorithm,
    generation: usize,
) -> Arc<SigningKey> {
    static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
    let slot = {
        let mut cache = CACHE.get_or_init(Mutex::default).lock();
        Arc::clone(
            cache
                .entry((issuer.to_owned(), algorithm, generation))
                .or_default(),
        )
    };
    // The key is generated outside the lock, so that other issuers do not wait.
    Arc::clone(slot.get_or_init(|| {
        let kid = format!("{}-{generation}", algorithm.as_str().to_ascii_lowercase());
        Arc::new(SigningKey::generate(algorithm, kid).expect("the test key is generated"))
    }))
}
