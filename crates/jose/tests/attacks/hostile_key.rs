//! Malformed, weak and misused published keys are not used.

use portcullis_jose::{Algorithm, KeyError, KeySet, MAX_KEYS, SigningKey};
use portcullis_metadata::JwkSet;
use serde_json::{Value, json};

use crate::support::{PAYLOAD, RSA, all, changed, decode, encode, import, key, verify};

/// Returns why the key is rejected, or `None` if it is accepted.
fn rejection(jwk: &Value) -> Option<KeyError> {
    let (keys, rejected) = import(std::slice::from_ref(jwk), all());
    assert_eq!(keys.is_empty(), !rejected.is_empty());
    rejected.first().map(|rejected| rejected.reason)
}

/// Returns an RSA key whose modulus has exactly this many bits. The modulus is not a product of two
/// primes.
fn rsa(bits: usize, exponent: &[u8]) -> Value {
    let mut modulus = vec![0; bits.div_ceil(8)];
    modulus[0] |= 1 << ((bits - 1) % 8);
    *modulus.last_mut().unwrap() |= 1;
    json!({ "kty": "RSA", "alg": "RS256", "n": encode(modulus), "e": encode(exponent) })
}

const F4: &[u8] = &[1, 0, 1];

/// C2: the length of RSA moduli is checked in bits.
#[test]
fn rsa_sizes() {
    for bits in [2048, 2049, 3072, 4096, 8191, 8192] {
        assert_eq!(rejection(&rsa(bits, F4)), None, "{bits}");
    }
    for bits in [8, 512, 1024, 2040, 2041, 2047, 8193, 8200, 16384] {
        assert_eq!(rejection(&rsa(bits, F4)), Some(KeyError::Modulus), "{bits}");
    }
    let even = changed(
        rsa(2048, F4),
        json!({ "n": encode([&[0x80; 255][..], &[0]].concat()) }),
    );
    assert_eq!(rejection(&even), Some(KeyError::Modulus));
}

/// C2: RSA exponents must be odd, at least 65537 and below 2^32.
#[test]
fn rsa_exponents() {
    for exponent in [
        &[1, 0, 1][..],
        &[1, 0, 3],
        &[0xff, 0xff, 0xff, 0xff],
        &[0, 1, 0, 1],
    ] {
        assert_eq!(rejection(&rsa(2048, exponent)), None, "{exponent:?}");
    }
    for exponent in [
        &[1][..],
        &[2],
        &[3],
        &[17],
        &[0xff, 0xff],
        &[1, 0, 0],
        &[1, 0, 2],
        &[1, 0, 0, 0, 1],
        &[0xff; 256],
    ] {
        assert_eq!(
            rejection(&rsa(2048, exponent)),
            Some(KeyError::Exponent),
            "{exponent:?}"
        );
    }
    for exponent in [&[][..], &[0], &[0, 0, 1, 0, 1]] {
        assert_eq!(
            rejection(&rsa(2048, exponent)),
            Some(KeyError::Malformed),
            "{exponent:?}"
        );
    }
}

/// C2: one leading zero byte of a modulus is ignored. More are rejected.
#[test]
fn leading_zeros() {
    let modulus = decode(RSA.public_jwk()["n"].as_str().unwrap());
    let padded = |zeros: usize| {
        let n = encode([&vec![0; zeros][..], &modulus].concat());
        changed(RSA.public_jwk(), json!({ "n": n }))
    };
    let (keys, _) = import(&[padded(1)], all());
    assert!(verify(&keys, &RSA.sign("JWT", PAYLOAD).unwrap()).is_ok());
    assert_eq!(rejection(&padded(2)), Some(KeyError::Malformed));
    let small = changed(
        rsa(1024, F4),
        json!({ "n": encode([&[0; 128][..], &[0x81; 128]].concat()) }),
    );
    assert_eq!(rejection(&small), Some(KeyError::Malformed));
}

/// C2: a signature must have the exact length of the modulus.
#[test]
fn rsa_signature_length() {
    let (keys, _) = import(&[RSA.public_jwk()], all());
    let token = RSA.sign("JWT", PAYLOAD).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let bytes = decode(signature);
    assert_eq!(bytes.len(), 256);

    for changed_key in [
        [&[0], &bytes[..]].concat(),
        [&bytes[..], &[0]].concat(),
        bytes[1..].to_vec(),
        vec![0; 256],
        vec![0xff; 256],
        vec![1; 1024],
    ] {
        assert!(verify(&keys, &format!("{signed}.{}", encode(changed_key))).is_err());
    }
}

/// C2: a key with a malformed or missing member is rejected.
#[test]
fn malformed_members() {
    let ec = key(Algorithm::Es256, "ec").public_jwk();
    let ed = key(Algorithm::EdDsa, "ed").public_jwk();
    for (jwk, members) in [
        (RSA.public_jwk(), &["n", "e"][..]),
        (ec, &["x", "y"]),
        (ed, &["x"]),
    ] {
        assert_eq!(rejection(&jwk), None);
        for &member in members {
            for value in [
                json!(null),
                json!(""),
                json!("!"),
                json!("AQAB=="),
                json!("AQ AB"),
                json!("AR"),
                json!("A"),
            ] {
                let changed_key = changed(jwk.clone(), json!({ member: value }));
                let reason = rejection(&changed_key);
                // An empty coordinate is valid base64url of the wrong length.
                assert!(
                    matches!(reason, Some(KeyError::Malformed | KeyError::Point)),
                    "{member} {value} {reason:?}"
                );
            }
        }
    }
}

/// C2: the key must be of the type and curve that its `alg` needs.
#[test]
fn an_algorithm_of_another_type() {
    let p256 = key(Algorithm::Es256, "k").public_jwk();
    let p384 = key(Algorithm::Es384, "k").public_jwk();
    let ed = key(Algorithm::EdDsa, "k").public_jwk();
    for (jwk, alg) in [
        (&p256, "RS256"),
        (&p256, "PS256"),
        (&p256, "ES384"),
        (&p256, "EdDSA"),
        (&p384, "ES256"),
        (&p384, "ES512"),
        (&ed, "ES256"),
        (&ed, "RS256"),
        (&RSA.public_jwk(), "ES256"),
        (&RSA.public_jwk(), "Ed25519"),
    ] {
        assert_eq!(
            rejection(&changed(jwk.clone(), json!({ "alg": alg }))),
            Some(KeyError::Mismatch),
            "{alg}"
        );
    }
    for alg in ["none", "HS256", "RSA-OAEP", "ES256K", "rs256", ""] {
        let changed_key = changed(RSA.public_jwk(), json!({ "alg": alg }));
        assert_eq!(
            rejection(&changed_key),
            Some(KeyError::UnsupportedAlgorithm),
            "{alg}"
        );
    }
}

/// C2: a P-384 key with the `crv` P-256 and coordinates of the wrong length are rejected.
#[test]
fn a_key_of_another_curve_than_declared() {
    let p384 = key(Algorithm::Es384, "k").public_jwk();
    let declared = changed(p384, json!({ "alg": "ES256", "crv": "P-256" }));
    assert_eq!(rejection(&declared), Some(KeyError::Point));
    let p256 = key(Algorithm::Es256, "k").public_jwk();
    let x = decode(p256["x"].as_str().unwrap());
    for x in [&x[1..], &[&[0], &x[..]].concat(), &[&x[..], &[0]].concat()] {
        assert_eq!(
            rejection(&changed(p256.clone(), json!({ "x": encode(x) }))),
            Some(KeyError::Point)
        );
    }
    for crv in [
        "secp256k1",
        "P-224",
        "p-256",
        "Ed25519",
        "X25519",
        "Ed448",
        "",
    ] {
        let changed_key = changed(p256.clone(), json!({ "crv": crv }));
        assert_eq!(
            rejection(&changed_key),
            Some(KeyError::UnsupportedType),
            "{crv}"
        );
    }
}

/// C2: a point that is not on the curve and the origin are rejected.
#[test]
fn not_a_point_of_the_curve() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::Es512] {
        let jwk = key(algorithm, "k").public_jwk();
        let mut y = decode(jwk["y"].as_str().unwrap());
        *y.last_mut().unwrap() ^= 1;
        assert_eq!(
            rejection(&changed(jwk.clone(), json!({ "y": encode(&y) }))),
            Some(KeyError::Point),
            "{algorithm}"
        );
        let zero = encode(vec![0; y.len()]);
        assert_eq!(
            rejection(&changed(jwk, json!({ "x": zero, "y": zero }))),
            Some(KeyError::Point),
            "{algorithm}"
        );
    }
}

/// C2: an Ed25519 key must have 32 bytes.
#[test]
fn ed25519_length() {
    let ed = key(Algorithm::EdDsa, "k").public_jwk();
    for length in [0, 31, 33, 57, 64] {
        let changed_key = changed(ed.clone(), json!({ "x": encode(vec![7; length]) }));
        assert_eq!(rejection(&changed_key), Some(KeyError::Point), "{length}");
    }
}

/// C2: Ed25519 keys of small order, for which anyone can sign, and non-canonical encodings are
/// rejected.
#[test]
fn ed25519_without_a_private_key() {
    let ed = key(Algorithm::EdDsa, "k").public_jwk();
    let key_bytes = |first: u8, rest: u8, last: u8| [&[first][..], &[rest; 30], &[last]].concat();
    let order_eight = [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    ];
    let order_eight = order_eight.map(|hex| -> Vec<u8> {
        (0..32)
            .map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap())
            .collect()
    });
    let mut hostile = vec![
        key_bytes(0, 0, 0),
        key_bytes(1, 0, 0),
        key_bytes(0xec, 0xff, 0x7f),
    ];
    hostile.extend(order_eight);
    hostile.extend((0xed..=0xff).map(|first| key_bytes(first, 0xff, 0x7f)));
    for mut x in hostile {
        for sign in [0, 0x80] {
            x[31] = x[31] & 0x7f | sign;
            let changed_key = changed(ed.clone(), json!({ "x": encode(&x) }));
            assert_eq!(rejection(&changed_key), Some(KeyError::Point), "{x:x?}");
        }
    }

    // The second largest canonical encoding is accepted.
    let accepted = changed(ed, json!({ "x": encode(key_bytes(0xeb, 0xff, 0x7f)) }));
    assert_eq!(rejection(&accepted), None);
}

/// C2: `Ed25519` (RFC 9864) is an alias of `EdDSA` in keys and headers.
#[test]
fn ed25519_as_an_algorithm_name() {
    let signer = key(Algorithm::EdDsa, "ed");
    for on_key in [json!("Ed25519"), json!("EdDSA"), json!(null)] {
        let (keys, rejected) = import(
            &[changed(signer.public_jwk(), json!({ "alg": on_key }))],
            all(),
        );
        assert_eq!(rejected, []);
        for in_header in ["Ed25519", "EdDSA"] {
            let header = json!({ "alg": in_header, "kid": "ed" }).to_string();
            let token = signer
                .dangerous_sign_with_header(header.as_bytes(), PAYLOAD)
                .unwrap();
            assert_eq!(
                verify(&keys, &token),
                Ok(PAYLOAD.to_vec()),
                "{on_key} {in_header}"
            );
        }
    }
}

/// C2: `use` must be `sig` or absent, and `key_ops` must contain `verify` or be absent.
#[test]
fn keys_for_another_use() {
    let jwk = key(Algorithm::Es256, "k").public_jwk();
    for accepted in [
        json!({ "use": null }),
        json!({ "key_ops": ["verify"] }),
        json!({ "key_ops": ["sign", "verify"] }),
    ] {
        assert_eq!(
            rejection(&changed(jwk.clone(), accepted.clone())),
            None,
            "{accepted}"
        );
    }
    for rejected in [
        json!({ "use": "enc" }),
        json!({ "use": "SIG" }),
        json!({ "use": "" }),
        json!({ "key_ops": [] }),
        json!({ "key_ops": ["sign"] }),
        json!({ "key_ops": ["Verify"] }),
        json!({ "use": "enc", "key_ops": ["verify"] }),
        json!({ "use": "sig", "key_ops": ["encrypt"] }),
    ] {
        assert_eq!(
            rejection(&changed(jwk.clone(), rejected.clone())),
            Some(KeyError::NotForSignatures),
            "{rejected}"
        );
    }
}

/// C2: an invalid key does not affect the other keys.
#[test]
fn an_invalid_key_among_valid_ones() {
    let good = key(Algorithm::Es256, "good");
    let (keys, rejected) = import(
        &[
            json!(1),
            json!({}),
            json!({ "kty": "RSA", "kid": "bad" }),
            json!({ "kty": "oct", "k": "AA" }),
            good.public_jwk(),
        ],
        all(),
    );
    assert_eq!(keys.len(), 1);
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0].kid.as_deref(), Some("bad"));
    assert_eq!(rejected[0].reason, KeyError::Malformed);
    assert!(verify(&keys, &good.sign("JWT", PAYLOAD).unwrap()).is_ok());
}

/// C10: a set of more than 100 keys is rejected, even if the keys are invalid.
#[test]
fn too_many_keys() {
    let jwk = key(Algorithm::Es256, "k").public_jwk();
    let set = |keys: usize| {
        JwkSet::parse(
            json!({ "keys": vec![jwk.clone(); keys] })
                .to_string()
                .as_bytes(),
        )
        .unwrap()
    };
    assert!(KeySet::from_jwks(&set(MAX_KEYS), all()).is_ok());
    let error = KeySet::from_jwks(&set(MAX_KEYS + 1), all()).unwrap_err();
    assert_eq!(error, KeyError::TooManyKeys { found: 101 });
    let invalid = JwkSet::parse(
        json!({ "keys": vec![1; MAX_KEYS + 1] })
            .to_string()
            .as_bytes(),
    )
    .unwrap();
    assert!(KeySet::from_jwks(&invalid, all()).is_err());
}

/// J3: `Debug` and the public JWK contain no private member of a key.
#[test]
fn private_members_are_never_printed() {
    for algorithm in [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
        let signer = SigningKey::generate(algorithm, "k").unwrap();
        assert_eq!(
            format!("{signer:?}"),
            format!("SigningKey {{ kid: \"k\", algorithm: {algorithm:?}, .. }}")
        );
        let public = signer.public_jwk();
        for private in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
            assert!(public.get(private).is_none(), "{private}");
        }
    }
    let canary = encode("canary-canary-canary-canary-cana");
    let private = changed(
        key(Algorithm::Es256, "k").public_jwk(),
        json!({ "d": canary }),
    );
    let set = JwkSet::parse(json!({ "keys": [private] }).to_string().as_bytes()).unwrap();
    let (keys, rejected) = KeySet::from_jwks(&set, all()).unwrap();
    assert!(!format!("{set:?} {keys:?} {rejected:?}").contains(&canary));
}
