//! How often a verification allocates. A rise shows here before it shows in a benchmark.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use allocation_counter::measure;
use portcullis_jose::{Algorithm, AlgorithmSet, Compact, KeySet, SigningKey};
use portcullis_metadata::JwkSet;
use serde_json::json;

/// Verifying with a key that was imported once allocates nothing, but for the DER form of ECDSA signatures that
/// the library beneath builds, longer by a byte or two for some signatures.
#[test]
fn verifying() {
    for (algorithm, at_most) in
        [(Algorithm::Rs256, 0), (Algorithm::Ps256, 0), (Algorithm::EdDsa, 0), (Algorithm::Es256, 8)]
    {
        let (keys, token) = published(algorithm);
        let compact = Compact::parse(&token, 4096).unwrap();
        keys.verify(&compact).unwrap();
        let allocated = measure(|| assert!(keys.verify(&compact).is_ok())).count_total;
        assert!(allocated <= at_most, "{algorithm}: {allocated}");
    }
}

/// Taking a token apart allocates three times: for `kid`, `typ` and the payload.
#[test]
fn parsing() {
    let (_, token) = published(Algorithm::EdDsa);
    assert_eq!(measure(|| assert!(Compact::parse(&token, 4096).is_ok())).count_total, 3);
    let rubbish = "x".repeat(8192);
    assert_eq!(measure(|| assert!(Compact::parse(&rubbish, 4096).is_err())).count_total, 0);
}

fn published(algorithm: Algorithm) -> (KeySet, String) {
    let key = SigningKey::generate(algorithm, "k").unwrap();
    let jwks = JwkSet::parse(json!({ "keys": [key.public_jwk()] }).to_string().as_bytes()).unwrap();
    let (keys, _) = KeySet::from_jwks(&jwks, AlgorithmSet::EMPTY.with(algorithm)).unwrap();
    (keys, key.sign("at+jwt", br#"{"sub":"alice"}"#).unwrap())
}
