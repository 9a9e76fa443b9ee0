//! The Wycheproof vectors, from the folder that `PORTCULLIS_VECTORS` names. Without it they are not run, and say so.

use std::{env, fs, path::Path};

use serde_json::Value;

use crate::verified;

const FOLDER: &str = "PORTCULLIS_VECTORS";

/// Vectors that the set calls valid and that are refused here, with the reason.
const REFUSED_SIGNATURES: &[(u64, &str)] = &[
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
    (372, "HMAC, and no base64url"),
    (373, "HMAC, and no base64url"),
    (376, "HMAC"),
    (377, "HMAC"),
];

const REFUSED_KEYS: &[(u64, &str)] = &[(2, "HMAC"), (13, "HMAC"), (14, "HMAC"), (15, "HMAC")];

/// Vectors that the set calls invalid and that verify here, with the reason.
const ACCEPTED_KEYS: &[(u64, &str)] = &[(7, "primes of the ROCA form are the issuer's to avoid")];

/// C2: the published signature vectors, altered padding, signatures, encodings and algorithms among them.
#[test]
fn json_web_signature() {
    let Some(vectors) = vectors("json_web_signature") else { return };
    run(&vectors, 401, REFUSED_SIGNATURES, &[]);
}

/// C2: the published key vectors, wrong uses, sizes, exponents, curves and points among them.
#[test]
fn json_web_key() {
    let Some(vectors) = vectors("json_web_key") else { return };
    run(&vectors, 26, REFUSED_KEYS, ACCEPTED_KEYS);
}

/// C2: the figures of RFC 7520 whose keys name another algorithm than their tokens verify once the keys name none.
#[test]
fn rfc_7520_figures() {
    let Some(vectors) = vectors("json_web_signature") else { return };
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

/// A set of vectors; `None` when no folder is named. A folder that does not have it is an error.
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
fn vectors(name: &str) -> Option<Value> {
    let Some(folder) = env::var_os(FOLDER) else {
        eprintln!("not run: the Wycheproof set {name}, for {FOLDER} names no folder");
        return None;
    };
    let file = Path::new(&folder).join(name).with_extension("json");
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{FOLDER} has no {}: {error}", file.display()));
    Some(serde_json::from_slice(&text).unwrap())
}

fn run(vectors: &Value, total: usize, refused: &[(u64, &str)], accepted: &[(u64, &str)]) {
    let mut seen = 0;
    let mut surprises = Vec::new();
    for group in vectors["testGroups"].as_array().unwrap() {
        let key = group.get("public").unwrap_or(&group["private"]);
        let keys = key.get("keys").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![key.clone()]);
        for test in group["tests"].as_array().unwrap() {
            seen += 1;
            let id = test["tcId"].as_u64().unwrap();
            let listed = |list: &[(u64, &str)]| list.iter().any(|(listed, _)| *listed == id);
            let expected = match test["result"].as_str().unwrap() {
                "valid" => !listed(refused),
                _ => listed(accepted),
            };
            let token = test["jws"].as_str().map_or_else(|| test["jws"].to_string(), str::to_owned);
            if verified(&keys, &token).is_some() != expected {
                surprises.push((id, test["comment"].to_string()));
            }
        }
    }
    assert_eq!(seen, total);
    assert_eq!(surprises, []);
}
