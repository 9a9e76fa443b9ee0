//! What is shown of keys and tokens, and the names that logs and metrics know errors by.

use std::collections::HashSet;

use portcullis_metadata::{JwkSet, UnixTime};

use crate::{
    Algorithm, AlgorithmSet, Compact, DpopKey, DpopProof, JoseError, KeyError, KeySet, KnownHeader, ProofError,
    ReceivedProof, SigningError, SigningKey,
};

/// Names are relied on by dashboards and alerts.
#[test]
fn codes_are_stable() {
    let of_tokens = [
        (JoseError::TooLarge { limit: 1 }, "token.too_large"),
        (JoseError::Malformed, "token.malformed"),
        (JoseError::Signature, "token.signature"),
        (JoseError::UnknownKey, "token.key_unknown"),
    ];
    for (error, code) in of_tokens {
        assert_eq!(error.code(), code);
    }
    let of_keys = [
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
    for (error, code) in of_keys {
        assert_eq!(error.code(), code);
    }
    let of_signing =
        [SigningError::Generation, SigningError::Signature, SigningError::Import].map(|error| error.code());
    assert_eq!(of_signing, ["signing.generation", "signing.signature", "signing.import"]);
    let of_proofs = [ProofError::Jose(JoseError::Signature), ProofError::Type, ProofError::Key, ProofError::Claims];
    assert_eq!(of_proofs.map(ProofError::code), ["token.signature", "proof.type", "proof.key", "proof.claims"]);
    assert_eq!(of_keys.map(|(_, code)| code).into_iter().collect::<HashSet<_>>().len(), of_keys.len());
}

/// Algorithms are shown by their registered names.
#[test]
fn algorithms_show_their_names() {
    assert_eq!(Algorithm::Rs256.to_string(), "RS256");
    let set: AlgorithmSet = [Algorithm::Rs256, Algorithm::EdDsa].into_iter().collect();
    assert_eq!(format!("{set:?}"), "{Rs256, EdDsa}");
}

/// Of a token its header is shown and nothing else; of keys their names.
#[test]
fn tokens_and_keys_are_not_shown() {
    let key = SigningKey::generate(Algorithm::Es256, "2026-01").unwrap();
    let token = key.sign("at+jwt", br#"{"sub":"canary"}"#).unwrap();
    let parsed = Compact::parse(&token, 1024).unwrap();
    let published = serde_json::json!({ "keys": [key.public_jwk()] }).to_string();
    let allowed = AlgorithmSet::EMPTY.with(Algorithm::Es256);
    let (keys, _) = KeySet::from_jwks(&JwkSet::parse(published.as_bytes()).unwrap(), allowed).unwrap();
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
    let shown = [
        (format!("{:?}", ReceivedProof::verify(&proof, 4096, allowed).unwrap()), "ReceivedProof { thumbprint: "),
        (format!("{parsed:?}"), "Compact { header: Header {"),
        (format!("{:?}", KnownHeader::of(&parsed)), "KnownHeader(Header {"),
        (format!("{keys:?}"), r#"[(Some("2026-01"), Es256)]"#),
        (format!("{:?}", keys.verify(&parsed).unwrap()), "VerifiedPayload([16 bytes])"),
        (format!("{:?}", DpopKey::generate().unwrap()), "DpopKey { thumbprint: "),
    ];
    for (text, start) in shown {
        assert!(text.starts_with(start), "{text}");
        assert!(!text.contains("canary") && !text.contains(token.rsplit('.').next().unwrap()), "{text}");
    }
    assert!(format!("{parsed:?}").contains("2026-01"));
}

/// A header that is known is borrowed; another one is read, whatever is known.
#[test]
fn a_known_header_is_not_read_again() {
    let sign = |kid| SigningKey::generate(Algorithm::Es256, kid).unwrap().sign("at+jwt", b"{}").unwrap();
    let (one, other) = (sign("one"), sign("other"));
    let known = KnownHeader::of(&Compact::parse(&one, 1024).unwrap());
    let again = Compact::parse_knowing(&one, 1024, Some(&known)).unwrap();
    let twice = Compact::parse_knowing(&one, 1024, Some(&known)).unwrap();
    assert!(std::ptr::eq(again.header(), twice.header()));
    assert_eq!(Compact::parse_knowing(&other, 1024, Some(&known)).unwrap().header().kid(), Some("other"));
}

/// The payload that is kept is the one that was read.
#[test]
fn the_payload_is_kept() {
    let token = SigningKey::generate(Algorithm::Es256, "one").unwrap().sign("at+jwt", br#"{"sub":"alice"}"#).unwrap();
    assert_eq!(Compact::parse(&token, 1024).unwrap().into_unverified_payload(), br#"{"sub":"alice"}"#);
}
