use portcullis_jose::{Algorithm, JoseError};
use serde_json::json;

use crate::support::{PAYLOAD, RSA, all, changed, import, key, published, verify};

/// C2: a token that names another published key is verified by that one alone.
#[test]
fn the_kid_of_another_key() {
    let (first, second) = (key(Algorithm::Es256, "first"), key(Algorithm::Es256, "second"));
    let keys = published(&[&first, &second]);
    let header = br#"{"alg":"ES256","kid":"second"}"#;
    let token = first.dangerous_sign_with_header(header, PAYLOAD).unwrap();
    assert_eq!(verify(&keys, &token), Err(JoseError::Signature));
    assert_eq!(verify(&keys, &second.sign("JWT", PAYLOAD).unwrap()), Ok(PAYLOAD.to_vec()));
}

/// C10: an identifier that nobody published is told apart from a bad signature, so that keys can be fetched anew.
#[test]
fn an_unknown_kid() {
    let signer = key(Algorithm::Es256, "ec");
    let keys = published(&[&signer]);
    for kid in ["EC", "ec ", "", "other"] {
        let header = json!({ "alg": "ES256", "kid": kid }).to_string();
        let token = signer.dangerous_sign_with_header(header.as_bytes(), PAYLOAD).unwrap();
        assert_eq!(verify(&keys, &token), Err(JoseError::UnknownKey), "{kid:?}");
        assert!(!keys.knows_kid(kid, Algorithm::Es256));
    }
    assert!(keys.knows_kid("ec", Algorithm::Es256));
    assert!(!keys.knows_kid("ec", Algorithm::Es384));
    assert_eq!(verify(&Default::default(), &RSA.sign("JWT", PAYLOAD).unwrap()), Err(JoseError::UnknownKey));
}

/// C2: one identifier for keys of different types works: the pair of identifier and algorithm decides.
#[test]
fn one_kid_for_two_types() {
    let (ec, ed) = (key(Algorithm::Es256, "k"), key(Algorithm::EdDsa, "k"));
    let keys = published(&[&ec, &ed]);
    for signer in [ec, ed] {
        assert_eq!(verify(&keys, &signer.sign("JWT", PAYLOAD).unwrap()), Ok(PAYLOAD.to_vec()));
    }
}

/// C2: several keys of one identifier and algorithm are ambiguous, and only they.
#[test]
fn one_kid_for_two_keys_of_one_algorithm() {
    let (first, second) = (key(Algorithm::Es256, "k"), key(Algorithm::Es256, "k"));
    let other = key(Algorithm::Es256, "other");
    let keys = published(&[&first, &second, &other]);
    for signer in [first, second] {
        assert_eq!(verify(&keys, &signer.sign("JWT", PAYLOAD).unwrap()), Err(JoseError::AmbiguousKey));
    }
    assert_eq!(verify(&keys, &other.sign("JWT", PAYLOAD).unwrap()), Ok(PAYLOAD.to_vec()));
}

/// C3: a token without `kid` is tried with the one key that fits the algorithm, with a `kid` of its own or not.
#[test]
fn no_kid_and_one_fitting_key() {
    let (ec, ed) = (key(Algorithm::Es256, "ec"), key(Algorithm::EdDsa, "ed"));
    let token = ec.dangerous_sign_with_header(br#"{"alg":"ES256"}"#, PAYLOAD).unwrap();
    assert_eq!(verify(&published(&[&ec, &ed]), &token), Ok(PAYLOAD.to_vec()));
    let (nameless, _) = import(&[changed(ec.public_jwk(), json!({ "kid": null })), ed.public_jwk()], all());
    assert_eq!(verify(&nameless, &token), Ok(PAYLOAD.to_vec()));
    assert_eq!(verify(&nameless, &ec.sign("JWT", PAYLOAD).unwrap()), Err(JoseError::UnknownKey));
}

/// C3: a token without `kid` is tried with none of several fitting keys, and not without one.
#[test]
fn no_kid_and_no_single_fitting_key() {
    let (first, second) = (key(Algorithm::Es256, "first"), key(Algorithm::Es256, "second"));
    let token = first.dangerous_sign_with_header(br#"{"alg":"ES256"}"#, PAYLOAD).unwrap();
    assert_eq!(verify(&published(&[&first, &second]), &token), Err(JoseError::AmbiguousKey));
    assert_eq!(verify(&published(&[&RSA]), &token), Err(JoseError::UnknownKey));
}
