//! Counts the allocations of parsing and verification.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use allocation_counter::measure;
use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, KeySet, SigningKey};
use portcullis_metadata::JwkSet;
use serde_json::json;

/// Verification with an imported key does not allocate, except for ECDSA: josekit converts the
/// signature to DER.
#[test]
fn verifying() {
    for (algorithm, max) in [
        (Algorithm::Rs256, 0),
        (Algorithm::Ps256, 0),
        (Algorithm::EdDsa, 0),
        (Algorithm::Es256, 8),
    ] {
        let (keys, token) = published(algorithm);
        let compact = CompactJws::parse(&token, 4096).unwrap();
        keys.verify(&compact).unwrap();
        let allocated = measure(|| assert!(keys.verify(&compact).is_ok())).count_total;
        assert!(allocated <= max, "{algorithm}: {allocated}");
    }
}

/// Parsing a token allocates three times: for `kid`, `typ` and the payload.
#[test]
fn parsing() {
    let (_, token) = published(Algorithm::EdDsa);
    assert_eq!(
        measure(|| assert!(CompactJws::parse(&token, 4096).is_ok())).count_total,
        3
    );
    let too_long = "x".repeat(8192);
    assert_eq!(
        measure(|| assert!(CompactJws::parse(&too_long, 4096).is_err())).count_total,
        0
    );
}

fn published(algorithm: Algorithm) -> (KeySet, String) {
    let key = SigningKey::generate(algorithm, "k").unwrap();
    let jwks = JwkSet::parse(json!({ "keys": [key.public_jwk()] }).to_string().as_bytes()).unwrap();
    let (keys, _) = KeySet::from_jwks(&jwks, AlgorithmSet::EMPTY.with(algorithm)).unwrap();
    (keys, key.sign("at+jwt", br#"{"sub":"alice"}"#).unwrap())
}
