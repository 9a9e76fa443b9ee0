//! Tokens with another algorithm than the key's are rejected.

use josekit::{
    jwk::Jwk,
    jws::{HS256, JwsSigner, RS256},
};
use portcullis_jose::{Algorithm, AlgorithmSet, JoseError};
use serde_json::{Value, json};

use crate::support::{PAYLOAD, RSA, all, changed, decode, encode, import, key, published, verify};

/// C2: an HMAC token with the public key's PEM, JWK or modulus as its secret is rejected, although
/// josekit would accept it.
#[test]
fn hmac_keyed_by_the_public_key() {
    let keys = published(&[&RSA]);
    let jwk = RSA.public_jwk();
    let modulus = decode(jwk["n"].as_str().unwrap());
    for secret in [rsa_pem(&jwk), jwk.to_string().into_bytes(), modulus] {
        for alg in ["HS256", "HS384", "HS512", "hs256"] {
            let signed = format!(
                "{}.{}",
                encode(json!({ "alg": alg, "kid": "rsa" }).to_string()),
                encode(PAYLOAD)
            );
            let signature = HS256
                .signer_from_bytes(&secret)
                .unwrap()
                .sign(signed.as_bytes())
                .unwrap();
            let token = format!("{signed}.{}", encode(signature));
            assert_eq!(
                verify(&keys, &token),
                Err(JoseError::UnsupportedAlgorithm),
                "{alg}"
            );
        }
    }
}

/// C2: an HMAC with the `alg` RS256 is not a valid RSA signature.
#[test]
fn hmac_declared_as_rs256() {
    let signed = format!(
        "{}.{}",
        encode(r#"{"alg":"RS256","kid":"rsa"}"#),
        encode(PAYLOAD)
    );
    let secret = rsa_pem(&RSA.public_jwk());
    let signature = HS256
        .signer_from_bytes(secret)
        .unwrap()
        .sign(signed.as_bytes())
        .unwrap();
    assert_eq!(
        verify(
            &published(&[&RSA]),
            &format!("{signed}.{}", encode(signature))
        ),
        Err(JoseError::Signature)
    );
}

/// C2: `none` is rejected in any letter case, with and without a signature.
#[test]
fn none_in_any_letter_case() {
    let keys = published(&[&RSA]);
    let valid = RSA.sign("at+jwt", PAYLOAD).unwrap();
    let signature = valid.rsplit('.').next().unwrap();
    for mask in 0..16 {
        let none: String = "none"
            .chars()
            .enumerate()
            .map(|(index, letter)| {
                if mask >> index & 1 == 1 {
                    letter.to_ascii_uppercase()
                } else {
                    letter
                }
            })
            .collect();
        let signed = format!(
            "{}.{}",
            encode(json!({ "alg": none, "kid": "rsa" }).to_string()),
            encode(PAYLOAD)
        );
        assert_eq!(
            verify(&keys, &format!("{signed}.")),
            Err(JoseError::Malformed),
            "{none}"
        );
        assert_eq!(
            verify(&keys, &format!("{signed}.{signature}")),
            Err(JoseError::UnsupportedAlgorithm),
            "{none}"
        );
    }
}

/// C2: algorithm names are case-sensitive, and similar names are rejected.
#[test]
fn similar_names() {
    let keys = published(&[&RSA]);
    for alg in [
        "rs256",
        "Rs256",
        "RS256 ",
        " RS256",
        "RS256\u{0}",
        "RS",
        "RSA",
        "RS1",
        "ES256K",
        "Ed448",
        "",
        "none ",
        "\u{0}none",
    ] {
        let header = json!({ "alg": alg, "kid": "rsa" }).to_string();
        let token = RSA
            .dangerous_sign_with_header(header.as_bytes(), PAYLOAD)
            .unwrap();
        assert_eq!(
            verify(&keys, &token),
            Err(JoseError::UnsupportedAlgorithm),
            "{alg:?}"
        );
    }
}

/// C2: a key that is published for RS256 is not used for other RSA algorithms, even if all are
/// allowed.
#[test]
fn a_key_of_one_algorithm_used_with_another() {
    let keys = published(&[&RSA]);
    for alg in [
        "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "EdDSA",
    ] {
        let header = json!({ "alg": alg, "kid": "rsa" }).to_string();
        let token = RSA
            .dangerous_sign_with_header(header.as_bytes(), PAYLOAD)
            .unwrap();
        assert_eq!(verify(&keys, &token), Err(JoseError::UnknownKey), "{alg}");
    }
}

/// C2: a token with an algorithm that is not allowed is rejected, even if its key is published.
#[test]
fn an_algorithm_that_is_not_allowed() {
    let es256 = key(Algorithm::Es256, "ec");
    let (keys, rejected) = import(
        &[RSA.public_jwk(), es256.public_jwk()],
        AlgorithmSet::default(),
    );
    assert_eq!(rejected.len(), 1);
    assert_eq!(keys.len(), 1);
    let token = es256.sign("at+jwt", PAYLOAD).unwrap();
    assert_eq!(
        verify(&keys, &token),
        Err(JoseError::AlgorithmNotAllowed(Algorithm::Es256))
    );
    assert_eq!(
        verify(&keys, &RSA.sign("at+jwt", PAYLOAD).unwrap()),
        Ok(PAYLOAD.to_vec())
    );
}

/// C2: every allowed algorithm verifies its own signatures.
#[test]
fn every_allowed_algorithm_verifies() {
    for algorithm in Algorithm::ALL {
        let signer = key(algorithm, "k");
        let keys = published(&[&signer]);
        assert_eq!(
            verify(&keys, &signer.sign("at+jwt", PAYLOAD).unwrap()),
            Ok(PAYLOAD.to_vec()),
            "{algorithm}"
        );
        let other = key(algorithm, "k");
        assert_eq!(
            verify(&keys, &other.sign("at+jwt", PAYLOAD).unwrap()),
            Err(JoseError::Signature),
            "{algorithm}"
        );
    }
}

/// C2: an RSA key without `alg` is used only for allowed algorithms.
#[test]
fn an_rsa_key_without_alg() {
    let jwk = changed(RSA.public_jwk(), json!({ "alg": null }));
    let token = RSA.sign("at+jwt", PAYLOAD).unwrap();
    let (default, _) = import(std::slice::from_ref(&jwk), AlgorithmSet::default());
    assert_eq!(default.len(), 1);
    assert_eq!(verify(&default, &token), Ok(PAYLOAD.to_vec()));
    let (all_allowed, _) = import(std::slice::from_ref(&jwk), all());
    assert_eq!(all_allowed.len(), 6);
    assert_eq!(verify(&all_allowed, &token), Ok(PAYLOAD.to_vec()));
    let (no_rsa, rejected) = import(&[jwk], AlgorithmSet::EMPTY.with(Algorithm::Es256));
    assert!(no_rsa.is_empty());
    assert_eq!(rejected.len(), 1);
}

fn rsa_pem(jwk: &Value) -> Vec<u8> {
    let jwk = Jwk::from_map(jwk.as_object().unwrap().clone()).unwrap();
    // josekit must accept the PEM: an attacker would use the same.
    let pem = encode_pem(&jwk);
    assert!(RS256.verifier_from_pem(&pem).is_ok());
    pem
}

/// The RSA public key as a PEM file (PKCS #1), as an attacker finds it.
fn encode_pem(jwk: &Jwk) -> Vec<u8> {
    let integer = |name: &str| {
        let mut bytes = decode(jwk.parameter(name).unwrap().as_str().unwrap());
        if bytes[0] >= 0x80 {
            bytes.insert(0, 0);
        }
        der(2, &bytes)
    };
    let key = der(0x30, &[integer("n"), integer("e")].concat());
    let algorithm = [
        0x30, 13, 6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 5, 0,
    ];
    let spki = der(
        0x30,
        &[algorithm.to_vec(), der(3, &[vec![0], key].concat())].concat(),
    );
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, spki);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|line| str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        lines.join("\n")
    )
    .into_bytes()
}

/// A DER value with this tag.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let head = match length {
        [0, short @ 0..=127] => vec![tag, short],
        [0, long] => vec![tag, 0x81, long],
        [high, low] => vec![tag, 0x82, high, low],
    };
    [head, content.to_vec()].concat()
}
