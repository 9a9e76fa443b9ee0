//! Tokens verify with the keys of their issuer, and changed ones do not.

use std::time::Duration;

use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, JoseError, KeySet};
use portcullis_metadata::{Clock, JwkSet};
use serde_json::{Value, json};

use crate::{ManualClock, TestIssuer, flip_payload, flip_signature};

const ISSUER: &str = "https://issuer.example/realms/test";

fn verify(test_issuer: &TestIssuer, token: &str) -> Result<Value, JoseError> {
    let jwks = JwkSet::parse(test_issuer.jwks_json().as_bytes()).unwrap();
    let allowed: AlgorithmSet = Algorithm::ALL.into_iter().collect();
    let (keys, _) = KeySet::from_jwks(&jwks, allowed).unwrap();
    let compact = CompactJws::parse(token, 16 * 1024)?;
    let payload = keys.verify(&compact)?;
    Ok(serde_json::from_slice(payload.bytes()).unwrap())
}

fn test_issuer() -> TestIssuer {
    TestIssuer::new(ISSUER).with_algorithm(Algorithm::Es256)
}

#[test]
fn a_token_is_valid_at_the_time_of_the_clock() {
    let clock = ManualClock::new();
    let test_issuer = test_issuer()
        .with_clock(clock.clone())
        .with_resource("https://mcp.example.com/other");
    clock.advance(Duration::from_secs(60));
    let claims = verify(
        &test_issuer,
        &test_issuer
            .token()
            .scope("a b")
            .without("jti")
            .claim("x", 1)
            .sign(),
    )
    .unwrap();
    let now = clock.now().as_secs();
    assert_eq!(
        claims,
        json!({ "iss": ISSUER, "aud": "https://mcp.example.com/other", "sub": "alice", "client_id": "test-client",
            "iat": now, "exp": now + 300, "scope": "a b", "x": 1 })
    );
}

#[test]
fn tokens_are_unique() {
    assert_ne!(test_issuer().token().sign(), test_issuer().token().sign());
}

#[test]
fn changed_tokens_do_not_verify() {
    let test_issuer = test_issuer();
    let token = test_issuer.token();
    let valid = token.sign();
    assert_eq!(
        verify(&test_issuer, &flip_signature(&valid)),
        Err(JoseError::Signature)
    );
    assert_eq!(
        verify(&test_issuer, &flip_payload(&valid)),
        Err(JoseError::Signature)
    );
    assert!(verify(&test_issuer, &token.unsigned("none")).is_err());
    assert_eq!(
        verify(&test_issuer, &token.clone().alg("RS256").sign()),
        Err(JoseError::UnknownKey)
    );
    assert_eq!(
        verify(&test_issuer, &token.clone().kid("other").sign()),
        Err(JoseError::UnknownKey)
    );
    assert_eq!(
        verify(
            &test_issuer,
            &token.clone().header("crit", json!([])).sign()
        ),
        Err(JoseError::UnsupportedExtension)
    );
    assert_eq!(
        verify(&test_issuer, &token.raw_header("{}").sign()),
        Err(JoseError::MalformedHeader)
    );
}

#[test]
fn public_keys_as_hmac_secrets() {
    for (test_issuer, forms) in [
        (test_issuer(), 6),
        (TestIssuer::new(ISSUER), 6),
        (test_issuer().with_algorithm(Algorithm::EdDsa), 3),
    ] {
        let tokens = test_issuer.token().hmac_with_public_key();
        assert_eq!(tokens.len(), forms);
        for token in tokens {
            assert_eq!(
                verify(&test_issuer, &token),
                Err(JoseError::UnsupportedAlgorithm)
            );
        }
    }
}

#[test]
fn issuers_have_different_keys_with_the_same_kid() {
    let test_issuer = test_issuer();
    let attacker = TestIssuer::new("https://other.example").with_algorithm(Algorithm::Es256);
    assert_eq!(test_issuer.key().kid(), attacker.key().kid());
    let token = test_issuer.token();
    assert_eq!(
        verify(&test_issuer, &token.self_signed(&attacker.key())),
        Err(JoseError::Signature)
    );
    assert_eq!(
        verify(&test_issuer, &token.signed_by(attacker.key()).sign()),
        Err(JoseError::Signature)
    );
}

#[test]
fn rotation_withdraws_the_old_key() {
    let test_issuer = test_issuer();
    let old = test_issuer.token().sign();
    test_issuer.rotate();
    assert_eq!(verify(&test_issuer, &old), Err(JoseError::UnknownKey));
    assert!(verify(&test_issuer, &test_issuer.token().sign()).is_ok());
}

#[test]
fn urls_of_an_issuer() {
    let test_issuer = test_issuer();
    let metadata = "https://issuer.example/.well-known/oauth-authorization-server/realms/test";
    assert_eq!(test_issuer.metadata_url().as_str(), metadata);
    assert_eq!(
        test_issuer.endpoint("jwks").as_str(),
        "https://issuer.example/realms/test/jwks"
    );
    let without_path = TestIssuer::new("https://issuer.example");
    assert_eq!(
        without_path.metadata_url().as_str(),
        "https://issuer.example/.well-known/oauth-authorization-server"
    );
    assert_eq!(
        without_path.endpoint("jwks").as_str(),
        "https://issuer.example/jwks"
    );
    let document = portcullis_metadata::AuthorizationServerMetadata::parse(
        test_issuer.metadata_json().as_bytes(),
    )
    .unwrap();
    assert_eq!(document.issuer, *test_issuer.issuer());
    assert_eq!(document.jwks_uri, Some(test_issuer.endpoint("jwks")));
}
