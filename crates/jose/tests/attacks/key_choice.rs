//! Exactly one key must match a token.

use portcullis_jose::{Algorithm, JoseError};
use serde_json::json;

use crate::support::{PAYLOAD, RSA, all, changed, import, key, published, verify};

/// C2: a token is verified only with the key that its `kid` names.
#[test]
fn the_kid_of_another_key() {
    let first = key(Algorithm::Es256, "first");
    let second = key(Algorithm::Es256, "second");
    let keys = published(&[&first, &second]);
    let header = br#"{"alg":"ES256","kid":"second"}"#;
    let token = first.dangerous_sign_with_header(header, PAYLOAD).unwrap();
    assert_eq!(verify(&keys, &token), Err(JoseError::Signature));
    assert_eq!(
        verify(&keys, &second.sign("JWT", PAYLOAD).unwrap()),
        Ok(PAYLOAD.to_vec())
    );
}

/// C2, C10: an identifier is only compared. An unknown one and an invalid signature give different
/// errors, so the caller can fetch the keys again.
#[test]
fn an_unknown_kid() {
    let signer = key(Algorithm::Es256, "ec");
    let keys = published(&[&signer]);
    let paths = [
        "../other.json",
        "/dev/null",
        "https://other.example/jwks",
        "https://issuer.example#ec",
    ];
    for kid in [
        "EC",
        "ec ",
        " ec",
        "ec\u{0}",
        "",
        "other",
        "*",
        "' OR '1'='1",
    ]
    .into_iter()
    .chain(paths)
    {
        let header = json!({ "alg": "ES256", "kid": kid }).to_string();
        let token = signer
            .dangerous_sign_with_header(header.as_bytes(), PAYLOAD)
            .unwrap();
        assert_eq!(verify(&keys, &token), Err(JoseError::UnknownKey), "{kid:?}");
    }
    assert_eq!(
        verify(&Default::default(), &RSA.sign("JWT", PAYLOAD).unwrap()),
        Err(JoseError::UnknownKey)
    );
}

/// C2: two keys of different types can share an identifier, because the algorithm is part of the
/// choice.
#[test]
fn one_kid_for_two_types() {
    let ec = key(Algorithm::Es256, "k");
    let ed = key(Algorithm::EdDsa, "k");
    let keys = published(&[&ec, &ed]);
    for signer in [ec, ed] {
        assert_eq!(
            verify(&keys, &signer.sign("JWT", PAYLOAD).unwrap()),
            Ok(PAYLOAD.to_vec())
        );
    }
}

/// C2: keys with the same identifier and algorithm are ambiguous. Other keys are not affected.
#[test]
fn one_kid_for_two_keys_of_one_algorithm() {
    let first = key(Algorithm::Es256, "k");
    let second = key(Algorithm::Es256, "k");
    let other = key(Algorithm::Es256, "other");
    let keys = published(&[&first, &second, &other]);
    for signer in [first, second] {
        assert_eq!(
            verify(&keys, &signer.sign("JWT", PAYLOAD).unwrap()),
            Err(JoseError::AmbiguousKey)
        );
    }
    assert_eq!(
        verify(&keys, &other.sign("JWT", PAYLOAD).unwrap()),
        Ok(PAYLOAD.to_vec())
    );
}

/// C3: a token without `kid` is verified with the only key for its algorithm, whether that key has
/// a `kid` or not.
#[test]
fn no_kid_and_one_matching_key() {
    let ec = key(Algorithm::Es256, "ec");
    let ed = key(Algorithm::EdDsa, "ed");
    let token = ec
        .dangerous_sign_with_header(br#"{"alg":"ES256"}"#, PAYLOAD)
        .unwrap();
    assert_eq!(
        verify(&published(&[&ec, &ed]), &token),
        Ok(PAYLOAD.to_vec())
    );
    let (nameless, _) = import(
        &[
            changed(ec.public_jwk(), json!({ "kid": null })),
            ed.public_jwk(),
        ],
        all(),
    );
    assert_eq!(verify(&nameless, &token), Ok(PAYLOAD.to_vec()));
    assert_eq!(
        verify(&nameless, &ec.sign("JWT", PAYLOAD).unwrap()),
        Err(JoseError::UnknownKey)
    );
}

/// C3: a token without `kid` is rejected if several keys or no key match its algorithm.
#[test]
fn no_kid_and_no_single_matching_key() {
    let first = key(Algorithm::Es256, "first");
    let second = key(Algorithm::Es256, "second");
    let token = first
        .dangerous_sign_with_header(br#"{"alg":"ES256"}"#, PAYLOAD)
        .unwrap();
    assert_eq!(
        verify(&published(&[&first, &second]), &token),
        Err(JoseError::AmbiguousKey)
    );
    assert_eq!(
        verify(&published(&[&RSA]), &token),
        Err(JoseError::UnknownKey)
    );
}
