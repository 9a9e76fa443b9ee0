//! The Wycheproof vectors in the folder named by `PORTCULLIS_VECTORS`. Without that variable they
//! are skipped with a message.

use std::{env, fs, path::Path};

use serde_json::Value;

use crate::verified;

const FOLDER: &str = "PORTCULLIS_VECTORS";

/// Vectors that are marked as valid but are rejected here, with the reason.
const REJECTED_SIGNATURES: &[(u64, &str)] = &[
    (1, "HMAC"),
    (346, "the key's alg is PS256, the token's PS384"),
    (347, "the key's alg is ES521, which is not registered"),
    (348, "HMAC"),
    (350, "the key's alg is PS256, the token's PS384"),
    (351, "the key's alg is ES521, which is not registered"),
    (352, "HMAC"),
    (357, "HMAC"),
    (358, "HMAC"),
    (359, "HMAC"),
    (372, "HMAC, and not base64url"),
    (373, "HMAC, and not base64url"),
    (376, "HMAC"),
    (377, "HMAC"),
];

const REJECTED_KEYS: &[(u64, &str)] = &[(2, "HMAC"), (13, "HMAC"), (14, "HMAC"), (15, "HMAC")];

/// Vectors that are marked as invalid but verify here, with the reason.
const ACCEPTED_KEYS: &[(u64, &str)] = &[(7, "the issuer must avoid primes with the ROCA weakness")];

/// C2: the signature vectors, including altered padding, signatures, encodings and algorithms.
#[test]
fn json_web_signature() {
    let Some(vectors) = vectors("json_web_signature") else {
        return;
    };
    run(&vectors, 401, REJECTED_SIGNATURES, &[]);
}

/// C2: the key vectors, including wrong uses, sizes, exponents, curves and points.
#[test]
fn json_web_key() {
    let Some(vectors) = vectors("json_web_key") else {
        return;
    };
    run(&vectors, 26, REJECTED_KEYS, ACCEPTED_KEYS);
}

/// C2: the RFC 7520 figures whose keys have another `alg` than their tokens verify after `alg` is
/// removed from the keys.
#[test]
fn rfc_7520_figures() {
    let Some(vectors) = vectors("json_web_signature") else {
        return;
    };
    let mut verifying = 0;
    for group in vectors["testGroups"].as_array().unwrap() {
        let mut key = group.get("public").cloned().unwrap_or_default();
        if group["comment"].as_str().unwrap().starts_with("rfc7520") && key.is_object() {
            key.as_object_mut().unwrap().remove("alg");
            assert!(verified(&[key], group["tests"][0]["jws"].as_str().unwrap()).is_some());
            verifying += 1;
        }
    }
    assert_eq!(verifying, 6);
}

/// Reads a vector set. Returns `None` if the variable is not set. Panics if the folder does not
/// have the set.
#[expect(clippy::print_stderr, reason = "a skipped test must be visible")]
fn vectors(name: &str) -> Option<Value> {
    let Some(folder) = env::var_os(FOLDER) else {
        eprintln!("skipped: the Wycheproof set {name}, because {FOLDER} is not set");
        return None;
    };
    let file = Path::new(&folder).join(name).with_extension("json");
    let json = fs::read(&file)
        .unwrap_or_else(|error| panic!("{FOLDER} has no {}: {error}", file.display()));
    Some(serde_json::from_slice(&json).unwrap())
}

/// Checks that exactly the vectors marked as valid verify, apart from the listed exceptions.
fn run(vectors: &Value, total: usize, rejected: &[(u64, &str)], accepted: &[(u64, &str)]) {
    let mut count = 0;
    let mut failures = Vec::new();
    for group in vectors["testGroups"].as_array().unwrap() {
        let key = group.get("public").unwrap_or(&group["private"]);
        let keys = key
            .get("keys")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_else(|| vec![key.clone()]);
        for test in group["tests"].as_array().unwrap() {
            count += 1;
            let id = test["tcId"].as_u64().unwrap();
            let listed = |list: &[(u64, &str)]| list.iter().any(|(listed, _)| *listed == id);
            let expected = match test["result"].as_str().unwrap() {
                "valid" => !listed(rejected),
                _ => listed(accepted),
            };
            let token = test["jws"]
                .as_str()
                .map_or_else(|| test["jws"].to_string(), str::to_owned);
            if verified(&keys, &token).is_some() != expected {
                failures.push((id, test["comment"].to_string()));
            }
        }
    }
    assert_eq!(count, total);
    assert_eq!(failures, []);
}
