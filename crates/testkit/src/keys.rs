use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use portcullis_jose::{Algorithm, SigningKey};

type Cache = HashMap<(String, Algorithm, usize), Arc<OnceLock<Arc<SigningKey>>>>;

/// The key of an issuer's generation, made once a process: RSA keys take long to generate.
pub(crate) fn key_of(issuer: &str, algorithm: Algorithm, generation: usize) -> Arc<SigningKey> {
    static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
    let slot = {
        let mut cache = CACHE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cache.entry((issuer.to_owned(), algorithm, generation)).or_default())
    };
    // Outside the lock, so that keys of other issuers need not wait.
    Arc::clone(slot.get_or_init(|| {
        let kid = format!("{}-{generation}", algorithm.as_str().to_ascii_lowercase());
        Arc::new(SigningKey::generate(algorithm, kid).expect("the test key is generated"))
    }))
}
