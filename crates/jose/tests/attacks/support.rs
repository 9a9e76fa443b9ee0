//! Keys, sets and tokens for the attacks.

use std::sync::{Arc, LazyLock};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_jose::{
    Algorithm, AlgorithmSet, CompactJws, JoseError, KeySet, RejectedKey, SigningKey,
};
use portcullis_metadata::JwkSet;
use serde_json::{Value, json};

pub(crate) const PAYLOAD: &[u8] = br#"{"sub":"alice"}"#;
const MAX_TOKEN: usize = 16 * 1024;

/// One RSA key for all tests, because generating it is slow.
pub(crate) static RSA: LazyLock<Arc<SigningKey>> = LazyLock::new(|| key(Algorithm::Rs256, "rsa"));

pub(crate) fn key(algorithm: Algorithm, kid: &str) -> Arc<SigningKey> {
    Arc::new(SigningKey::generate(algorithm, kid).unwrap())
}

pub(crate) fn all() -> AlgorithmSet {
    Algorithm::ALL.into_iter().collect()
}

pub(crate) fn import(jwks: &[Value], allowed: AlgorithmSet) -> (KeySet, Vec<RejectedKey>) {
    let document = json!({ "keys": jwks }).to_string();
    KeySet::from_jwks(&JwkSet::parse(document.as_bytes()).unwrap(), allowed).unwrap()
}

/// Returns the set of the keys. All algorithms are allowed.
pub(crate) fn published(keys: &[&SigningKey]) -> KeySet {
    let jwks: Vec<Value> = keys.iter().map(|key| key.public_jwk()).collect();
    let (set, rejected) = import(&jwks, all());
    assert_eq!(rejected, []);
    set
}

pub(crate) fn verify(keys: &KeySet, token: &str) -> Result<Vec<u8>, JoseError> {
    let compact = CompactJws::parse(token, MAX_TOKEN)?;
    keys.verify(&compact)
        .map(|payload| payload.bytes().to_vec())
}

/// Changes members of a JWK. A null removes the member.
pub(crate) fn changed(mut jwk: Value, changes: Value) -> Value {
    let members = jwk.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    jwk
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}
