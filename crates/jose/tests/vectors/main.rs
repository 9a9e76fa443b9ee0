//! Tests with published vectors.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod rfc;
mod wycheproof;

use portcullis_jose::{Algorithm, CompactJws, KeySet};
use portcullis_metadata::JwkSet;
use serde_json::{Value, json};

/// Returns the payload if the token verifies with these keys. All algorithms are allowed.
fn verified(keys: &[Value], token: &str) -> Option<Vec<u8>> {
    let document = json!({ "keys": keys }).to_string();
    let jwks = JwkSet::parse(document.as_bytes()).unwrap();
    let (keys, _) = KeySet::from_jwks(&jwks, Algorithm::ALL.into_iter().collect()).unwrap();
    let compact = CompactJws::parse(token, 64 * 1024).ok()?;
    keys.verify(&compact)
        .ok()
        .map(|payload| payload.bytes().to_vec())
}
