//! Tests of the error codes, and of the output of `Display` and `Debug`.

use portcullis_metadata::{JwkSet, UnixTime};

use crate::{
    Algorithm, AlgorithmSet, CompactJws, DpopKey, DpopProof, JoseError, KeyError, KeySet,
    ProofError, ReceivedProof, SigningError, SigningKey,
};

/// Dashboards and alerts depend on the codes.
#[test]
fn codes_are_stable() {
    let token_codes = [
        (JoseError::TooLarge { limit: 1 }, "token.too_large"),
        (JoseError::Malformed, "token.malformed"),
        (JoseError::Encrypted, "token.encrypted"),
        (JoseError::MalformedHeader, "token.header_malformed"),
        (JoseError::DuplicateMember, "token.header_duplicate"),
        (JoseError::UnsupportedExtension, "token.header_extension"),
        (
            JoseError::UnsupportedAlgorithm,
            "token.algorithm_unsupported",
        ),
        (
            JoseError::AlgorithmNotAllowed(Algorithm::Es256),
            "token.algorithm_not_allowed",
        ),
        (JoseError::UnknownKey, "token.key_unknown"),
        (JoseError::AmbiguousKey, "token.key_ambiguous"),
        (JoseError::Signature, "token.signature"),
    ];
    for (error, code) in token_codes {
        assert_eq!(error.code(), code);
    }
    let key_codes = [
        (KeyError::TooManyKeys { found: 101 }, "keys.too_many"),
        (KeyError::NotForSignatures, "key.not_for_signatures"),
        (KeyError::UnsupportedAlgorithm, "key.algorithm_unsupported"),
        (KeyError::AlgorithmNotAllowed, "key.algorithm_not_allowed"),
        (KeyError::UnsupportedType, "key.type_unsupported"),
        (KeyError::Mismatch, "key.mismatch"),
        (KeyError::Malformed, "key.malformed"),
        (KeyError::Modulus, "key.modulus"),
        (KeyError::Exponent, "key.exponent"),
        (KeyError::Point, "key.point"),
    ];
    for (error, code) in key_codes {
        assert_eq!(error.code(), code);
    }
    let signing_codes = [
        SigningError::Generation,
        SigningError::Signature,
        SigningError::Import,
    ]
    .map(|error| error.code());
    assert_eq!(
        signing_codes,
        ["signing.generation", "signing.signature", "signing.import"]
    );

    let proof_errors = [
        ProofError::Jose(JoseError::Signature),
        ProofError::Type,
        ProofError::Key,
        ProofError::Claims,
    ];
    assert_eq!(
        proof_errors.map(ProofError::code),
        ["token.signature", "proof.type", "proof.key", "proof.claims"]
    );
}

/// Algorithms are displayed by their registered names.
#[test]
fn algorithms_display_their_names() {
    assert_eq!(Algorithm::Rs256.to_string(), "RS256");
    let set: AlgorithmSet = [Algorithm::Rs256, Algorithm::EdDsa].into_iter().collect();
    assert_eq!(format!("{set:?}"), "{Rs256, EdDsa}");
}

/// `Debug` prints a token's header and the identifiers of keys, and nothing else.
#[test]
fn debug_prints_no_tokens_and_keys() {
    let key = SigningKey::generate(Algorithm::Es256, "2026-01").unwrap();
    let token = key.sign("at+jwt", br#"{"sub":"canary"}"#).unwrap();
    let parsed = CompactJws::parse(&token, 1024).unwrap();
    let published = serde_json::json!({ "keys": [key.public_jwk()] }).to_string();
    let allowed = AlgorithmSet::EMPTY.with(Algorithm::Es256);
    let (keys, _) =
        KeySet::from_jwks(&JwkSet::parse(published.as_bytes()).unwrap(), allowed).unwrap();
    let proof = DpopProof {
        id: "canary",
        method: "POST",
        url: "https://as.example/token",
        issued_at: UnixTime::from_secs(1),
        nonce: None,
        access_token: None,
    };
    let proof = DpopKey::generate().unwrap().proof(&proof).unwrap();
    assert_eq!(key.kid(), "2026-01");

    let outputs = [
        (
            format!(
                "{:?}",
                ReceivedProof::verify(&proof, 4096, allowed).unwrap()
            ),
            "ReceivedProof { thumbprint: ",
        ),
        (format!("{parsed:?}"), "CompactJws { header: Header {"),
        (format!("{keys:?}"), r#"[(Some("2026-01"), Es256)]"#),
        (
            format!("{:?}", keys.verify(&parsed).unwrap()),
            "VerifiedPayload([16 bytes])",
        ),
        (
            format!("{:?}", DpopKey::generate().unwrap()),
            "DpopKey { thumbprint: ",
        ),
    ];
    for (text, start) in outputs {
        assert!(text.starts_with(start), "{text}");
        assert!(!text.contains("canary"), "{text}");
        assert!(!text.contains(token.rsplit('.').next().unwrap()), "{text}");
    }
    assert!(format!("{parsed:?}").contains("2026-01"));
}
